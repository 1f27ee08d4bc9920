import { once } from 'node:events'
import { Duplex } from 'node:stream'
import t from 'tap'
import { packetType } from '../../../broker/connection/protocol.ts'
import { takePubacksAhead } from '../../../broker/connection/pubacks.ts'

const pingreq = Buffer.of(0xc0, 0)

function encodePuback(packetId: number): Buffer {
  return Buffer.of(packetType.puback << 4, 2, packetId >> 8, packetId & 0xff)
}

/** `taken`: identifiers of the taken PUBACKs. `passedBytes`: the bytes left to the stream, in hexadecimal. */
async function open(isAtEase: () => boolean = () => true) {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  const taken: number[] = []
  const passed: Buffer[] = []
  takePubacksAhead(socket, (packetId) => isAtEase() && taken.push(packetId) > 0)
  socket.on('data', (chunk: Buffer) => passed.push(chunk))
  await once(socket, 'resume')
  const passedBytes = () => Buffer.concat(passed).toString('hex')
  return { socket, taken, passedBytes, arrive: (...packets: Buffer[]) => socket.push(Buffer.concat(packets)) }
}

t.test('PUBACKs at the front are taken, in their order, and the rest goes on', async (t) => {
  const { arrive, taken, passedBytes } = await open()
  t.ok(arrive(encodePuback(7), encodePuback(65_535)), 'there is room for more')
  t.same(taken, [7, 65_535])
  t.equal(passedBytes(), '')
  arrive(encodePuback(1), pingreq, encodePuback(2))
  t.same(taken, [7, 65_535, 1])
  t.equal(passedBytes(), Buffer.concat([pingreq, encodePuback(2)]).toString('hex'))
})

t.test('what is no PUBACK, or none that is whole or well formed, goes on as it is', async (t) => {
  for (const bytes of [
    pingreq,
    encodePuback(7).subarray(0, 3), // incomplete
    encodePuback(0), // no identifier [MQTT-2.3.1-1]
    Buffer.of(0x41, 2, 0, 7), // reserved flags [MQTT-2.2.2-2]
    Buffer.of(0x40, 3, 0, 7, 0), // the length of a PUBACK is 2
  ]) {
    const { arrive, taken, passedBytes } = await open()
    arrive(bytes)
    t.same(taken, [])
    t.equal(passedBytes(), bytes.toString('hex'))
  }
})

t.test('nothing is taken while the packet before is not over', async (t) => {
  let isAtEase = false
  const { arrive, taken, passedBytes } = await open(() => isAtEase)
  arrive(encodePuback(7))
  t.same(taken, [])
  t.equal(passedBytes(), encodePuback(7).toString('hex'))
  isAtEase = true
  arrive(encodePuback(8))
  t.same(taken, [8])
})

t.test('nothing overtakes what a paused stream holds', async (t) => {
  const { socket, arrive, taken, passedBytes } = await open()
  socket.pause()
  arrive(pingreq)
  arrive(encodePuback(7))
  t.same(taken, [])
  socket.resume()
  while (socket.readableLength > 0) await once(socket, 'data')
  t.equal(passedBytes(), Buffer.concat([pingreq, encodePuback(7)]).toString('hex'))
  arrive(encodePuback(8))
  t.same(taken, [8])
})

t.test('the end of a stream is its end', async (t) => {
  const { socket } = await open()
  socket.push(null)
  await once(socket, 'end')
  t.ok(socket.readableEnded)
})
