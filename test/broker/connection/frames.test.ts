import fc from 'fast-check'
import { generate } from 'mqtt-packet'
import t from 'tap'
import { type Frame, FrameReader } from '../../../broker/connection/frames.ts'
import { countFilters } from '../../../broker/connection/packets.ts'
import { ProtocolViolation } from '../../../broker/connection/protocol.ts'
import { createHalfReceived } from '../../../listener/half-received.ts'
import { createFrameReader } from './frame-reader.ts'

const limit = 1000
const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')

function read(bytes: Buffer, reader = createFrameReader(limit)): Frame[] {
  return [...framesOf(bytes, reader)]
}

function* framesOf(bytes: Buffer, reader: FrameReader): Generator<Frame> {
  reader.push(bytes)
  for (let frame = reader.next(); frame; frame = reader.next()) yield frame
}

function violation(bytes: Buffer): ProtocolViolation | undefined {
  try {
    read(bytes)
  } catch (error) {
    if (error instanceof ProtocolViolation) return error
    throw error
  }
  return undefined
}

t.test('what closes the connection', async (t) => {
  const table: [why: string, bytes: string][] = [
    ['type 0', '00 00'],
    ['type 15', 'f0 00'],
    ['CONNACK from a client', '20 02 00 00'],
    ['SUBACK from a client', '90 03 0001 00'],
    ['UNSUBACK from a client', 'b0 02 0001'],
    ['PINGRESP from a client', 'd0 00'],
    ['remaining length of five bytes', '30 ff ff ff ff 01'],
    ['PUBLISH QoS 3', '36 05 0001 61 0001'],
    ['PUBLISH DUP at QoS 0', '38 03 0001 61'],
    ['PUBLISH empty topic', '30 02 0000'],
    ['PUBLISH topic with +', '30 05 0003 612f2b'],
    ['PUBLISH topic with #', '30 05 0003 612f23'],
    ['PUBLISH topic with U+0000', '30 05 0003 610062'],
    ['PUBLISH topic with a surrogate', '30 05 0003 eda080'],
    ['PUBLISH topic with overlong UTF-8', '30 04 0002 c080'],
    ['PUBLISH topic longer than the packet', '30 03 0005 61'],
    ['PUBLISH without packet identifier', '32 03 0001 61'],
    ['PUBLISH packet identifier 0', '32 05 0001 61 0000'],
    ['PUBLISH without anything', '30 00'],
    ['PUBACK of one byte', '40 01 00'],
    ['PUBACK of three bytes', '40 03 0001 00'],
    ['PUBACK identifier 0', '40 02 0000'],
    ['PUBACK with flags', '41 02 0001'],
    ['PUBREL without its flags', '60 02 0001'],
    ['PUBREC with flags', '52 02 0001'],
    ['PUBCOMP with flags', '72 02 0001'],
    ['SUBSCRIBE without its flags', '80 06 0001 0001 61 00'],
    ['SUBSCRIBE identifier 0', '82 06 0000 0001 61 00'],
    ['SUBSCRIBE without filters', '82 02 0001'],
    ['SUBSCRIBE QoS 3', '82 06 0001 0001 61 03'],
    ['SUBSCRIBE QoS with reserved bits', '82 06 0001 0001 61 81'],
    ['SUBSCRIBE without QoS', '82 05 0001 0001 61'],
    ['SUBSCRIBE empty filter', '82 05 0001 0000 00'],
    ['SUBSCRIBE filter with U+0000', '82 06 0001 0001 00 00'],
    ['UNSUBSCRIBE without its flags', 'a0 05 0001 0001 61'],
    ['UNSUBSCRIBE without filters', 'a2 02 0001'],
    ['UNSUBSCRIBE truncated filter', 'a2 05 0001 0004 61'],
    ['PINGREQ with a body', 'c0 01 00'],
    ['PINGREQ with flags', 'c1 00'],
    ['DISCONNECT with a body', 'e0 01 00'],
    ['a packet over the limit', '30 e9 07'],
  ]
  for (const [why, bytes] of table) t.ok(violation(hex(bytes)), why)
})

t.test('what goes through', async (t) => {
  const table: [what: string, bytes: string][] = [
    ['PUBLISH QoS 0 with empty payload', '30 03 0001 61'],
    ['PUBLISH QoS 1 DUP retained', '3b 05 0001 61 0001'],
    ['PUBLISH with a dot, which the ACL judges', '30 05 0003 612e62'],
    ['PUBREL', '62 02 0001'],
    ['SUBSCRIBE of two filters', '82 0a 0001 0001 61 00 0001 62 02'],
    ['UNSUBSCRIBE', 'a2 05 0001 0001 61'],
    ['PINGREQ', 'c0 00'],
    ['DISCONNECT', 'e0 00'],
  ]
  for (const [what, bytes] of table)
    t.same(
      read(hex(bytes)).map((frame) => frame.bytes),
      [hex(bytes)],
      what,
    )
})

t.test('frames before a violation are still handed over', async (t) => {
  const stream = Buffer.concat([hex('c0 00'), hex('30 03 0001 61'), hex('f0 00')])
  const frames: Frame[] = []
  t.throws(() => {
    for (const frame of framesOf(stream, createFrameReader(limit))) frames.push(frame)
  }, /not for clients/)
  t.equal(frames.length, 2)
})

t.test('an announced packet over the limit is refused by its header', async (t) => {
  const reader = createFrameReader(limit)
  t.throws(() => read(hex('30 80 80 80 64'), reader), /at most 1000/)
})

t.test('packets come out the same however the stream is cut', async (t) => {
  const stream = Buffer.concat([
    generate({
      cmd: 'publish',
      topic: 'a/b',
      payload: 'x'.repeat(300),
      qos: 1,
      messageId: 7,
      retain: false,
      dup: false,
    }),
    generate({ cmd: 'pingreq' }),
    generate({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'ä/#', qos: 1 }] }),
    generate({ cmd: 'publish', topic: 'c', payload: '', qos: 0, retain: true, dup: false }),
    generate({ cmd: 'disconnect' }),
  ])
  const whole = read(stream).map((frame) => frame.bytes.toString('hex'))
  const property = fc.property(fc.array(fc.nat(stream.length), { maxLength: stream.length }), (cuts) => {
    const reader = createFrameReader(limit)
    const points = [0, ...cuts.sort((a, b) => a - b), stream.length]
    const frames = points.slice(1).flatMap((end, index) => read(stream.subarray(points[index], end), reader))
    return JSON.stringify(frames.map((frame) => frame.bytes.toString('hex'))) === JSON.stringify(whole)
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 300 }))
})

t.test('random bytes either parse or violate, and nothing else', async (t) => {
  const property = fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
    violation(Buffer.from(bytes))
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 2000 }))
})

t.test('of a packet in pieces nothing is kept but its bytes', async (t) => {
  const payload = Buffer.alloc(100_000, 'x')
  const packet = generate({ cmd: 'publish', topic: 'a', payload, qos: 0, retain: false, dup: false })
  const reader = createFrameReader(1_000_000)
  const frames: Frame[] = []
  for (let at = 0; at < packet.length; at += 1000) {
    const piece = Buffer.from(packet.subarray(at, at + 1000))
    frames.push(...read(piece, reader))
    piece.fill(0)
  }
  t.equal(frames.length, 1)
  t.ok(frames[0]?.bytes.equals(packet))
  t.ok(reader.isBetweenPackets())
})

t.test('a packet that is whole is not copied', async (t) => {
  const packet = generate({ cmd: 'publish', topic: 'a', payload: 'x', qos: 0, retain: false, dup: false })
  const chunk = Buffer.concat([packet, packet])
  for (const frame of read(chunk)) t.equal(frame.bytes.buffer, chunk.buffer)
})

t.test('a packet in thousands of tiny pieces violates', async (t) => {
  const room = createHalfReceived(1_000_000, 500)
  const reader = new FrameReader(
    () => 1_000_000,
    () => room.collect(() => t.fail('there is room')),
    Infinity,
  )
  const drip = () => {
    for (let count = 0; count < 1000; count++) t.same(read(Buffer.of(0), reader), [], 'not whole')
  }
  t.same(read(hex('30 80 80 10'), reader), [])
  t.throws(drip, /pieces that are too small/)
})

t.test('a SUBSCRIBE or UNSUBSCRIBE with more filters than a session may have violates', async (t) => {
  const filters = (count: number) => Array.from({ length: count }, (_, index) => `radio/${index}`)
  const withRoomFor = (most: number) => createFrameReader(100_000, most)
  const packets = (count: number) => [
    generate({
      cmd: 'subscribe',
      messageId: 1,
      subscriptions: filters(count).map((topic) => ({ topic, qos: 1 })),
    }),
    generate({ cmd: 'unsubscribe', messageId: 1, unsubscriptions: filters(count) }),
  ]
  for (const packet of packets(100)) {
    const [frame] = read(packet, withRoomFor(100))
    t.equal(frame && countFilters(frame), 100)
  }
  for (const packet of packets(101)) {
    t.throws(() => read(packet, withRoomFor(100)), /more than 100 topic filters/)
  }
})
