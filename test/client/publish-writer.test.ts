import { type Packet, parser } from 'mqtt-packet'
import t from 'tap'
import { publishWriter } from '../../client/publish-writer.ts'

const payloads = [
  '',
  '{}',
  ...[120, 128, 16_370, 16_384, 409_600, 2_097_152].map((length) => 'x'.repeat(length)),
  'Grüße, 東京 🎵',
  '🎵'.repeat(100_000),
]

t.test('a PUBLISH is read as it was written, whatever its length and its characters', async (t) => {
  for (const payload of payloads) {
    for (const packetId of [1, 255, 256, 65_535]) {
      const { pieces, publish } = collecting()
      publish('inbox/urn:x', payload, packetId)
      await pieces.all
      const [packet, ...others] = packetsIn(pieces.written)
      t.same(others, [])
      t.match(packet, { cmd: 'publish', topic: 'inbox/urn:x', qos: 1, retain: false, dup: false })
      t.ok(
        packet?.cmd === 'publish' && packet.payload.toString() === payload && packet.messageId === packetId,
      )
    }
  }
})

t.test('events of one turn leave together and in order, and those of the next turn too', async (t) => {
  const { pieces, publish } = collecting()
  for (let turn = 0; turn < 3; turn++) {
    for (let number = 1; number <= 100; number++) publish('inbox/urn:x', `{"number":${number}}`, number)
    t.equal(pieces.written.length, turn, 'nothing leaves within the turn')
    await pieces.all
  }
  t.equal(pieces.written.length, 3)
  const numbers = packetsIn(pieces.written).map((packet) => packet.messageId)
  t.same(
    numbers,
    Array.from({ length: 300 }, (_, index) => (index % 100) + 1),
  )
})

t.test('bytes that wait to be sent stay as they are while more is written, small or large', async (t) => {
  const { pieces, publish } = collecting()
  const texts = Array.from(
    { length: 400 },
    (_, index) => payloads[index % payloads.length]?.slice(0, 9_000) ?? '',
  )
  for (const [index, text] of texts.entries()) {
    publish('inbox/urn:x', text, index + 1)
    if (index % 7 === 0) await pieces.all
  }
  await pieces.all
  const read = packetsIn(pieces.written).map(
    (packet) => packet.cmd === 'publish' && packet.payload.toString(),
  )
  t.ok(read.length === texts.length && read.every((text, index) => text === texts[index]))
})

/** What a writer has written, and `all`: a promise that is settled when it has written all of this turn. */
function collecting() {
  const written: Uint8Array[] = []
  const publish = publishWriter((bytes) => written.push(bytes))
  return {
    publish,
    pieces: {
      written,
      get all() {
        return new Promise(setImmediate)
      },
    },
  }
}

function packetsIn(written: readonly Uint8Array[]): Packet[] {
  const packets: Packet[] = []
  const parse = parser({ protocolVersion: 4 })
  parse.on('packet', (packet) => packets.push(packet))
  if (parse.parse(Buffer.concat(written)) !== 0) throw new Error('bytes are left')
  return packets
}
