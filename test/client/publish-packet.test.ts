import { type Packet, parser } from 'mqtt-packet'
import t from 'tap'
import { publishPacket } from '../../client/publish-packet.ts'

t.test('a PUBLISH is read as it was written, whatever its length and its characters', async (t) => {
  for (const payload of [
    '',
    '{}',
    ...[120, 128, 16_370, 16_384, 409_600, 2_097_152].map((length) => 'x'.repeat(length)),
    'Grüße, 東京 🎵',
    '🎵'.repeat(100_000),
  ]) {
    for (const packetId of [1, 255, 256, 65_535]) {
      const packets: Packet[] = []
      const parse = parser({ protocolVersion: 4 })
      parse.on('packet', (packet) => packets.push(packet))
      t.equal(parse.parse(Buffer.from(publishPacket('inbox/urn:x', payload, packetId))), 0, 'no byte is left')
      t.match(packets, [
        { cmd: 'publish', topic: 'inbox/urn:x', qos: 1, retain: false, dup: false, messageId: packetId },
      ])
      t.ok(packets[0]?.cmd === 'publish' && packets[0].payload.toString() === payload)
    }
  }
})
