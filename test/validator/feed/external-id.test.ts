import t from 'tap'
import { foldExternalId, isCrid } from '../../../validator/feed/external-id.ts'

t.test('crid://<authority>/<id>', async (t) => {
  for (const good of [
    'crid://a/b',
    'crid://a.example/b/c?d=e',
    'crid://a.example/ü%20',
    `crid://a/${'b'.repeat(491)}`,
  ]) {
    t.ok(isCrid(good), good)
  }
  const bad = [
    ...['', ' ', 'foo', 'http://a/b', 'crid:', 'crid://', 'crid://a', 'crid://a/', 'crid:///b', 'CRID://a/b'],
    ...['brid://a/b', 'crid://a b/c', 'crid://a/b c', 'crid://a/b\n', '\ncrid://a/b', 'crid://a/\u0000'],
    ...[
      'crid://a/\u200b',
      'crid://a/\u0085b',
      'crid://a/\u2028',
      'crid://a/b\ufe0f',
      'crid://a/b\u034f',
      'crid://\ud800/b',
      `crid://a/${'b'.repeat(492)}`,
    ],
  ]
  t.same(bad.filter(isCrid), [])
})

t.test('names that are taken for one', async (t) => {
  const name = foldExternalId('crid://a.example/stadt-ä')
  for (const alike of [
    ...['CRID://A.Example/Stadt-Ä', ' crid://a.example/stadt-ä\n', 'crid://a.example/stadt-%C3%A4'],
    ...['crid://a.example/stadt-a\u0308', 'crid://a.example/\u200bstadt-ä', 'crid://ａ.example/stadt-ä'],
    ...['crid://a.example/stadt-ä\ufe0f', 'crid://a.example/stadt\u3164-ä'],
  ]) {
    t.equal(foldExternalId(alike), name, alike)
  }
  t.not(foldExternalId('crid://a.example/stadt-a'), name)
  t.equal(foldExternalId('crid://a/100%'), 'crid://a/100%', 'not escaped')
})

t.test('names that differ in what writing hides', async (t) => {
  for (const [name, ...alikes] of [
    ['crid://a.example/café', 'crid://a.example/cafe%E2%80%8D%CC%81', 'crid://a.example/cafe\u200d\u0301'],
    ['crid://a.example/οδος', 'crid://a.example/ΟΔΟΣ', 'crid://a.example/οδοσ'],
    ['crid://a.example/strasse', 'crid://a.example/Straße', 'crid://a.example/STRAẞE'],
    ['crid://a.example/index', 'crid://a.example/INDEX', 'crid://a.example/ındex'],
    ['crid://a.example/50%ä', 'crid://a.example/50%%C3%A4', 'crid://a.example/5%30%ä'],
    ['crid://a.example/%ffä', 'crid://a.example/%FF%C3%A4', 'crid://a.example/%ff%c3%84'],
  ] as const) {
    for (const alike of alikes) t.equal(foldExternalId(alike), foldExternalId(name), alike)
  }
  t.not(foldExternalId('crid://a/%2541'), foldExternalId('crid://a/A'), 'unescaped once')
})
