import t from 'tap'
import { crc64, deriveLivestreamId, derivePublisherId } from '../../event/derived-id.ts'
import { collectGarbage } from '../collect-garbage.ts'
import { codeBlock, readPage } from '../documentation.ts'

const vectors: [text: string, digest: string][] = [
  ['my-string-to-encode', '6a80b80f748c9b50'],
  ['282310', '75dbb3dace15f610'],
  ['crid://swr.de/282310/demo7', '234690e18c2c7863'],
  ['123456789', '6c40df5f0b497347'], // check value of the catalogue of CRC algorithms
  ['', '0000000000000000'],
]

t.test('crc64 is CRC-64/ECMA-182 in 16 lower-case hexadecimal digits', async (t) => {
  for (const [text, digest] of vectors) t.equal(crc64(text), digest, JSON.stringify(text))
})

t.test('crc64 digests the UTF-8 bytes, not the UTF-16 units', async (t) => {
  t.equal(crc64('Küste 🎵'), bitwise(Buffer.from('Küste 🎵')))
})

t.test('long texts, of which a client may send any number, do not stay in memory', async (t) => {
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < 100; n++)
    derivePublisherId(Buffer.from(`${n} ${'x'.repeat(300_000)}`).toString('latin1'))
  collectGarbage()
  t.ok(process.memoryUsage().heapUsed - before < 10 * 1024 * 1024)
})

t.test('docs/https.md derives ids as the hub does', async (t) => {
  const page = readPage('https.md')
  const code = `${codeBlock(page, 'js', 'function crc64')}\nexport { crc64 }`
  const documented = await import(`data:text/javascript,${encodeURIComponent(code)}`)
  for (const text of [...vectors.map(([text]) => text), 'Küste 🎵']) {
    t.equal(documented.crc64(text), crc64(text), JSON.stringify(text))
  }
  for (const [text, derived] of [
    ['my-string-to-encode', crc64('my-string-to-encode')],
    ['282310', derivePublisherId('282310')],
    ['crid://swr.de/282310/demo7', deriveLivestreamId('PermanentLivestream', 'crid://swr.de/282310/demo7')],
  ] as const) {
    t.ok(
      page.split('\n').some((row) => row.startsWith(`| \`${text}\``) && row.endsWith(`\`${derived}\` |`)),
      text,
    )
  }
})

/** Computes the checksum by its definition, one bit at a time. */
function bitwise(bytes: Uint8Array): string {
  let crc = 0n
  for (const byte of bytes) {
    crc ^= BigInt(byte) << 56n
    for (let bit = 0; bit < 8; bit++) {
      crc = BigInt.asUintN(64, crc & (1n << 63n) ? (crc << 1n) ^ 0x42f0e1eba9ea3693n : crc << 1n)
    }
  }
  return crc.toString(16).padStart(16, '0')
}

t.test('ids derived from external ids (design.md §5)', async (t) => {
  t.equal(derivePublisherId('282310'), 'urn:org:publisher:75dbb3dace15f610')
  const externalId = 'crid://swr.de/282310/demo7'
  t.equal(
    deriveLivestreamId('PermanentLivestream', externalId),
    'urn:org:permanent-livestream:234690e18c2c7863',
  )
  t.equal(deriveLivestreamId('Livestream', externalId), 'urn:org:livestream:234690e18c2c7863')
  t.equal(deriveLivestreamId('Event', externalId), 'urn:org:event-livestream:234690e18c2c7863')
})
