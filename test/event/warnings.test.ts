import fc from 'fast-check'
import t from 'tap'
import { type HubEvent, kindByName } from '../../event/kind.ts'
import { checkShape } from '../../event/shape.ts'
import { type Warning, warningsOf, warningTable } from '../../event/warnings.ts'
import { control, data, playing, station } from '../events.ts'
import { between, words } from '../words.ts'

/* Warnings about what the hub accepts (open.md §3), row by row. What often is right must not warn. */

const receivedAt = Date.parse('2026-01-31T12:00:00+01:00')
const start = new Date(receivedAt).toISOString()
const pluginTargets = new Set(['dts'])

/** The warnings about an event, as places and codes. */
function warned(event: object): string[] {
  return warn(event).map(({ path, errorCode }) => `${path} ${errorCode}`)
}

/** The hub warns only of events that have passed the check of their shape. */
function warn(event: object, found: Warning[] = [], amid: object = {}): Warning[] {
  const shape = checkShape(event, { protocol: 'mqtt', now: receivedAt })
  if ('errors' in shape) throw new Error(JSON.stringify(shape.errors))
  const { kind, time } = shape
  return warningsOf(shape.event, { kind, time, receivedAt, pluginTargets, ...amid }, found)
}

const track = (fields: object = {}) => playing(station(), { start, playlistItemId: 'kw1-0042', ...fields })
const carried = (type: string, value: unknown, id?: unknown) =>
  data(station(), { start, data: [{ type, id, value }] })

t.test('the example of each row warns of it, and of nothing else', async (t) => {
  for (const [code, row] of Object.entries(warningTable)) {
    const { example, sentence } = row
    const isData = 'data' in example
    const event = isData ? data(station(), { start, ...example }) : track(example)
    const warnings = warn(event, [], 'exampleAmid' in row ? row.exampleAmid.circumstances : {})
    t.same(
      warnings.map(({ errorCode }) => errorCode),
      [code],
    )
    t.ok(warnings[0]?.message.startsWith(`${sentence}: `), code)
  }
})

t.test('an ordinary event of each kind does not warn', async (t) => {
  t.same(warn(track()), [])
  t.same(warn(track({ event: 'de.org.hub.v1.radio.track.next' })), [])
  t.same(warn(control(station(), { time: start, validUntil: '2026-01-31T13:00:00+01:00' })), [])
  t.same(warn(data(station(), { start })), [])
})

/** Titles and names that are right, although they look strange. */
const rightTexts = [
  ...['Å\u00a0leve', 'e\u0301te\u0301'],
  ...between(`
    SOS | YMCA | Du | I | 1999 | 7 | ? | ... | … | * | 4'33" | DNA. | MfG | HUMBLE. | = | ÷ | AC/DC | R&B |
    Salt & Pepper | Q&A | AT&T; | R&B; Soul | Rock&Roll; | Drum&Bass; Jungle | & Juliet | &amp | Simon &Garfunkel |
    #9 Dream | &#; is no entity | a&b;c | Mumford & Sons; Live | Track 01.5 | Mr. Wav | Mr.Wav | P.S. I love you |
    Vol. 2 | No. 5 | S.O.S. | mp3 | .mp3 | Dr. Ogg | Opus | Symphony No. 9, Op. 125 | wav | What. | www.example.org |
    Version 2.0 | A.I.F. | Das Mp3-Lied | Déjà Vu | À la claire fontaine | Ça plane pour moi | Où es-tu ? | CAFÉ… |
    L’ÉTÉ | «À BIENTÔT» | Noël | Zoé | Île | Ângela | Âme | ROMÂNIA | PÂQUES | Château | DÉJÀ VU | RÉALITÉ… | OLÉ™ |
    Ã | MANHÃ | MANHÃ… | “MANHÃ” | «AMANHÃ» | IRMÃ - IRMÃO | MAÇÃ, PÃO | SÃO JOÃO | CORAÇÃO | NÃO! | Ão | HYVÄ |
    HYVÄ… | ”HYVÄ” | ÄLÄ | Ä | ÄÄNI | MÄDCHEN | »MÄ« | KÄ‘ | JÄ – EI | Å | Å… | «Å» | BLÅ | »BLÅ« | BLÅ–GUL | MÅ–FR |
    PÅ’N | GÅ PÅ’N | BLÅ’S | Å leve | Åse | Łódź | Żółć | Zażółć gęślą jaźń | ŁÓDŹ… | Świat | İstanbul | Işık |
    Ağır Roman | ŞARKI | Çağ | Ğ | Sigur Rós | Ásgeir | Ðe | Þú | ÐÐ | Örvar Þóreyjarson | ÑANDÚ | ESPAÑA | Ñ | Ø |
    ØØ | »Ø« | MØ | Motörhead | Queensrÿche | Die Ärzte | Blue Öyster Cult | ÜBER… | ÖL | ß | Straße | âme | voilâ… |
    Хор Турецкого | Σ’ αγαπώ | שלום | فيروز | 上を向いて歩こう | 방탄소년단 | ♪ Lied ♫ | 🎵 | × 2 | 3 × 4 | 5° – 10° | § 218 |
    © 1999 | ½ | 100 € | It’s “right” | „Gänsefüßchen“ | ‹ja› | ïïï | æ…
  `),
]

t.test('a right text does not warn, wherever it stands', async (t) => {
  for (const text of rightTexts) {
    const everywhere = track({
      title: text,
      contributors: [{ name: text, role: 'artist' }],
      references: [{ type: 'Show', externalId: 'crid://a.example/1', title: text }],
      media: [{ type: 'cover', url: 'https://a.example/1', description: text, attribution: text }],
    })
    t.same(warned(everywhere), [], text)
    t.same(warned(track({ artist: text })), [], text)
    t.same(warned(carried('radiotext', text)), [], text)
    t.same(warned(data(station(), { start, text })), [], text)
  }
})

t.test('a song may be called as its artist, or begin so', async (t) => {
  const right: [artist: string | null, title: string][] = [
    ...(['Air', 'Iron Maiden', 'Mr. Mister', 'AC/DC'] as const).map((name): [string, string] => [name, name]),
    ['Air', 'Air on a G string'],
    ['Air', 'Air-Condition'],
    ['Prince', 'Prince: Live'],
    ['Nena', 'Nena feat. Kim Wilde'],
    ['Mira Hollund', 'Ebbe - Flut'],
    ['Mira', 'Mira Hollund - Ebbe und Flut'],
    ['Hollund', 'Ebbe und Flut - Mira Hollund'],
    ['Mira Hollund', 'Ebbe und Flut - Mira Hollund Remix'],
    ['-', '-'],
    [' ', ' - Ebbe'],
    ['', ' - '],
    [null, 'Mira Hollund - Ebbe und Flut'],
  ]
  for (const [artist, title] of right) t.same(warned(track({ artist, title })), [], `${artist}: ${title}`)
  const wrong: [artist: string, title: string][] = [
    ['Mira Hollund', 'Mira Hollund - Ebbe und Flut'],
    ['Mira Hollund', 'MIRA HOLLUND – Ebbe und Flut'],
    ['mira hollund ', ' Mira Hollund — Ebbe'],
    ['Mira Hollund', 'Ebbe und Flut - Mira Hollund'],
    ['AC/DC', 'AC/DC - Ebbe'],
  ]
  for (const [artist, title] of wrong)
    t.same(warned(track({ artist, title })), ['.title title.artist'], `${artist}: ${title}`)
})

t.test('identifiers are right in each form in which they are written', async (t) => {
  const isrcs = between(`
    DEXX12600042 | DE-XX1-26-00042 | dexx12600042 | DE XX1 26 00042 | GBAYE6800011 | QZES71982312
  `)
  for (const isrc of [...isrcs, 'ISRC US-S1Z-99-00001', 'DE‐XX1‐26‐00042', '', ' ', null])
    t.same(warned(track({ isrc })), [], String(isrc))
  for (const isrc of words(`DEXX1260004 DEXX126000421 DEXX126O0042 1EXX12600042 unknown - DE/XX1/26/00042`))
    t.same(warned(track({ isrc })), ['.isrc isrc.form'], isrc)

  // The last four are no UPC or EAN as far as one can tell: catalogue numbers, or a kind without such a digit.
  const upcs = between(`
    4000000000006 | 036000291452 | 4006381333931 | 0 36000 29145 2 | 00036000291452 |
    01234565 | 88697542122 | KF-001 | 7
  `)
  for (const upc of [...upcs, '', null]) t.same(warned(track({ upc })), [], String(upc))
  for (const upc of ['4000000000001', '036000291453', '4006381333913', '0-36000-29145-7', '10036000291452'])
    t.same(warned(track({ upc })), ['.upc upc.checksum'], upc)

  const by = (isni: string | null) => track({ contributors: [{ name: 'Mira', role: 'artist', isni }] })
  const isni = '0000000121032683'
  for (const right of [
    isni,
    '0000 0001 2103 2683',
    `https://isni.org/isni/${isni}`,
    `http://www.isni.org/${isni}/`,
    `ISNI ${isni}`,
    '000000012150090X',
    '0000-0001-2150-090x',
    '',
    null,
  ])
    t.same(warned(by(right)), [], String(right))
  for (const wrong of words(`
    0000000121032684 0000000121032638 121032683 0000000000000000 Q692 https://viaf.org/${isni} ${isni}0
  `))
    t.same(warned(by(wrong)), ['.contributors.0.isni isni.checksum'], wrong)
})

t.test('texts that a program has damaged warn, with their place', async (t) => {
  for (const text of between(`
    Ebbe &amp; Flut | It&#39;s | It&#x27;s | &quot;Ebbe&quot; | K&uuml;ste | Stra&szlig;e | Ebbe&nbsp; |
    &lt;b&gt; | &amp;amp; | &eacute;t&eacute; | A &ndash; B | K&UUML;STE
  `))
    t.same(warned(track({ title: text })), ['.title text.entity'], text)
  t.same(warned(track({ title: 'Ebbe\0\0', contributors: [{ name: 'Mira\0Jonte', role: 'artist' }] })), [
    '.title text.nul',
    '.contributors.0.name text.nul',
  ])
  t.same(warned(carried('radiotext', 'Ebbe\0')), ['.data.0.value text.nul'])
  const event = track({
    artist: 'KÃ¼ste &amp; Co',
    contributors: [
      { name: 'Mira', role: 'artist' },
      { name: 'FranÃ§ois', role: 'author' },
    ],
    references: [{ type: 'Show', externalId: 'crid://a.example/1', title: 'A &amp; B' }],
    media: [{ type: 'cover', url: 'https://a.example/1', description: 'KÃ¼ste', attribution: '&copy; Mira' }],
  })
  const places = `
    .artist text.entity | .references.0.title text.entity | .media.0.attribution text.entity |
    .artist text.encoding | .contributors.1.name text.encoding | .media.0.description text.encoding
  `
  t.same(warned(event), between(places))
  t.same(warned(data(station(), { start, text: 'A &amp; B', more: { text: '&amp;' } })), [
    '.text text.entity',
  ])
  t.same(warned(carried('dynlabel', 'KÃ¼ste')), ['.data.0.value text.encoding'])
  const times = { time: start, validUntil: '2026-01-31T13:00:00+01:00' }
  t.same(warned(control(station(), { ...times, reason: 'Stau &amp; Nebel' })), ['.reason text.entity'])
})

t.test('empty texts, names of files, other units and other schemes', async (t) => {
  for (const title of ['', ' ', '\t\n', '\u00a0'])
    t.same(warned(track({ title, playlistItemId: title })), [
      '.title text.empty',
      '.playlistItemId text.empty',
    ])
  for (const title of [
    'kw1_0042.mp3',
    'Ebbe und Flut.wav',
    'C:\\Musik\\Ebbe.WAV',
    '/srv/audio/1.flac',
    '1.m4a ',
    'Vol. 2.MP3',
  ])
    t.same(warned(track({ title })), ['.title title.file'], title)
  for (const length of [0.5, 214, 3_600, 86_400]) t.same(warned(track({ length })), [], String(length))
  for (const length of [86_401, 214_000])
    t.same(warned(track({ length })), ['.length length.unit'], String(length))

  const cover = { type: 'cover', url: 'https://a.example/1.jpg', description: 'Cover' }
  const media = [
    cover,
    { ...cover, url: 'HTTPS://A.EXAMPLE/1', templateUrl: null },
    { ...cover, type: 'audio', url: 'http://a.example/' },
  ]
  t.same(warned(track({ media })), [])
  const insecure = [
    'http://a.example/1.jpg',
    '//a.example/1.jpg',
    '1.jpg',
    '',
    'httpsx://a.example',
    'data:image/png;base64,AA',
  ]
  for (const url of insecure)
    t.same(warned(track({ media: [{ ...cover, url }] })), ['.media.0.url cover.insecure'], url)
  t.same(warned(track({ media: [cover, { ...cover, templateUrl: 'http://a.example/{width}' }] })), [
    '.media.1.templateUrl cover.insecure',
  ])
})

t.test('a title that began more than 30 s ago, or begins in more than 30 s', async (t) => {
  const at = (behind: number, fields = {}) =>
    track({ start: new Date(receivedAt - behind).toISOString(), ...fields })
  for (const behind of [0, 30_000, -30_000]) t.same(warn(at(behind)), [], String(behind))
  t.match(warn(at(45_400)), [
    { path: '.start', errorCode: 'start.clock', message: /45 s behind/, startBehindMs: 45_400 },
  ])
  t.match(warn(at(-3_600_000)), [{ message: /3600 s ahead/, startBehindMs: -3_600_000 }])
  t.equal(warn(at(30_001)).length, 1)
  t.same(warn(at(-3_600_000, { event: 'de.org.hub.v1.radio.track.next' })), [], 'next is in the future')
  t.same(warn(data(station(), { start: new Date(receivedAt - 60_000).toISOString() })), [])
})

t.test('radiotext, dynamic labels and classes of RT+', async (t) => {
  const right = [
    carried('radiotext', 'ü'.repeat(64)),
    carried('radiotext', '🎵'.repeat(64)),
    carried('dynlabel', 'x'.repeat(128)),
    carried('dynlabel', 'ü'.repeat(64)),
    carried('rtdlplus', 'x'.repeat(200), 32),
    carried('other', 'x'.repeat(200), 54),
    ...[0, 1, 53, 56, 63].map((id) => carried('rtdlplus', 'Mira', id)),
    ...[null, 7, 'text', {}, [null, 1, 'x', []]].map((list) => data(station(), { start, data: list })),
    carried('radiotext', 7),
  ]
  for (const event of right) t.same(warned(event), [], JSON.stringify(event.data))
  t.match(warn(carried('radiotext', 'x'.repeat(65))), [
    { path: '.data.0.value', errorCode: 'radiotext.length', message: /65 characters, expected at most 64/ },
  ])
  t.match(warn(carried('dynlabel', `${'ü'.repeat(64)}x`)), [
    { path: '.data.0.value', errorCode: 'radiotext.length', message: /129 bytes, expected at most 128/ },
  ])
  for (const id of [54, 55, 64, -1, 1.5, '32', null, undefined])
    t.same(warned(carried('rtdlplus', 'Mira', id)), ['.data.0.id rtplus.class'], String(id))
})

t.test('unknown types of plugin targets are named, with those that there are', async (t) => {
  t.same(warned(track({ plugins: [{ type: 'dts' }, { type: 'x', isDeactivated: true }] })), [])
  t.match(warn(track({ plugins: [{ type: 'dts' }, { type: 'other' }, { id: '1' }] })), [
    {
      path: '.plugins.1.type',
      errorCode: 'plugin.unknown',
      message: /"other", expected one of dts; skipped/,
    },
    { path: '.plugins.2.type', message: /: none, expected one of/ },
  ])
  const list = [null, { type: 1 }]
  t.same(
    warned(data(station(), { start, plugins: list })).length,
    2,
    'the schema of data does not check them',
  )
  for (const plugins of ['dts', 1, {}, null, true]) t.same(warned(data(station(), { start, plugins })), [])
  const kind = kindByName.get('de.org.hub.v1.radio.track.playing')
  if (!kind) throw new Error('no such kind')
  const without = { kind, time: receivedAt, receivedAt, pluginTargets: new Set<string>() }
  const event: unknown = track({ plugins: [{ type: 'dts' }] })
  t.match(warningsOf(event as HubEvent, without), [{ message: /there are no targets here/ }])
})

t.test(
  'warnings that were found before come first, and all together are bounded as errors are',
  async (t) => {
    const found = [{ path: '.services.0', message: 'completed', errorCode: 'dialect.completed' }]
    t.match(warn(track({ isrc: 'x' }), found), [found[0], { errorCode: 'isrc.form' }])
    const contributors = Array.from({ length: 3_000 }, () => ({ name: '&amp;', role: 'artist', isni: 'x' }))
    const many = warn(track({ contributors }), found)
    t.equal(many.length, 101)
    t.match(many[0], found[0])
    t.match(many.at(-1), {
      path: '.',
      message: 'Not listed: at least 5901 more warnings',
      errorCode: 'text.entity',
    })
    const plugins = Array.from({ length: 3_000 }, (_, index) => ({ type: `${index} `.repeat(100) }))
    t.ok(JSON.stringify(warn(track({ plugins }))).length < 66_000)
  },
)

/** An event with `text` in each of its fields that may have any. */
const filled = (text: string) => [
  track({
    title: text,
    artist: text,
    playlistItemId: text,
    isrc: text,
    upc: text,
    contributors: [{ name: text, role: 'artist', isni: text }],
    media: [{ type: 'cover', url: text, templateUrl: text, description: text, attribution: text }],
    plugins: [{ type: text }],
  }),
  data(station(), {
    start,
    text,
    data: ['radiotext', 'dynlabel', 'rtdlplus', text].map((type) => ({ type, id: text, value: text })),
  }),
]

t.test('any text is judged, and a message stays readable', async (t) => {
  const snippet = fc.constantFrom(' - ', ' ', ...words(`& amp ; Ã ¼ â € ™ . mp3 é - 0 X`))
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(snippet).map((parts) => parts.join('')),
  )
  fc.assert(
    fc.property(text, (text) => {
      for (const event of filled(text))
        for (const { message } of warn(event)) if (message.length > 500) return false
      return true
    }),
  )
  t.pass()
})

t.test('texts of 400 kB are judged in linear time: with more this test would not end', async (t) => {
  const snippets = [' ', ' -', ' - ', '\u00a0', ...words(`& &# &amp Ã Ã… â€ Ð… é… x. .mp3 0 0- isni:`)]
  for (const snippet of snippets) {
    const text = snippet.repeat(400_000 / snippet.length)
    const names = Array.from({ length: 3_000 }, () => ({ name: text.slice(0, 130), role: 'artist' }))
    for (const event of [...filled(text), track({ contributors: names })]) warn(event)
    t.pass(JSON.stringify(snippet))
  }
})
