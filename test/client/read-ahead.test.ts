import { PassThrough } from 'node:stream'
import type { MqttClient } from 'mqtt'
import { generate, type Packet } from 'mqtt-packet'
import t, { type Test } from 'tap'
import { readAhead } from '../../client/read-ahead.ts'

const message = (payload: string, qos: 0 | 1 = 0): Packet => ({
  cmd: 'publish',
  topic: 'x/ü',
  payload,
  qos,
  messageId: 9,
  dup: false,
  retain: payload === '',
})
const packets: Packet[] = [
  { cmd: 'connack', returnCode: 0, sessionPresent: false },
  message(''),
  // The length takes one byte, and then two.
  message('x'.repeat(121)),
  message('x'.repeat(122)),
  { cmd: 'suback', messageId: 7, granted: [1] },
  message('at QoS 1', 1),
  { cmd: 'pingresp' },
  message('x'.repeat(16_400)),
  message('x'.repeat(300_000)),
  { cmd: 'puback', messageId: 513 },
]
const isOurs = (packet: Packet) => packet.cmd === 'puback' || (packet.cmd === 'publish' && packet.qos === 0)

t.test('packets are told apart, however the stream cuts them', async (t) => {
  const all = Buffer.concat(packets.map((packet) => generate(packet)))
  for (const size of [1, 2, 3, 5, 100, 127, 128, 129, 16_384, all.length]) {
    const { stream, received, messages, left } = open(t)
    for (let at = 0; at < all.length; at += size) stream.emit('data', all.subarray(at, at + size))
    const ours = packets.filter(isOurs)
    t.same(
      received.map(({ cmd, messageId }) => [cmd, cmd === 'puback' && messageId]),
      ours.map(({ cmd }) => [cmd, cmd === 'puback' && 513]),
      `in pieces of ${size} bytes`,
    )
    t.same(
      messages,
      ours.flatMap((packet) =>
        packet.cmd === 'publish' ? [[packet.topic, packet.payload, packet.retain]] : [],
      ),
    )
    const others = packets.filter((packet) => !isOurs(packet)).map((packet) => generate(packet))
    t.same(Buffer.concat(left), Buffer.concat(others), 'all others reach mqtt.js')
  }
})

t.test('mqtt.js gets at once what has no end, and what is to be refused', async (t) => {
  for (const bytes of [
    Buffer.from('HTTP/1.1 400'),
    Buffer.of(0x40, 1, 0),
    Buffer.of(0x40, 0),
    Buffer.of(0x30, 1, 0),
    Buffer.of(0x30, 3, 0, 2, 0x78),
    Buffer.of(0x31, 0),
    Buffer.of(0x32, 4, 0, 1, 0x78, 0),
    Buffer.of(0x36, 5, 0, 1, 0x78, 0, 1),
    Buffer.of(0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
  ]) {
    const { stream, received, left } = open(t)
    stream.emit('data', bytes)
    t.same(Buffer.concat(left), bytes)
    t.same(received, [])
  }
})

function open(t: Test) {
  const stream = new PassThrough()
  t.teardown(() => stream.destroy())
  const received: { cmd: string; messageId?: number }[] = []
  const messages: unknown[] = []
  const left: Buffer[] = []
  stream.on('data', (bytes) => left.push(Buffer.from(bytes)))
  const emit = (name: string, ...values: unknown[]) => {
    if (name === 'packetreceive') received.push(values[0] as (typeof received)[number])
    if (name === 'message') {
      messages.push([values[0], `${values[1]}`, (values[2] as { retain: boolean }).retain])
    }
    return true
  }
  readAhead({ stream, emit } as unknown as MqttClient)
  return { stream, received, messages, left }
}
