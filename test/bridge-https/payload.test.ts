import { createServer, type IncomingMessage } from 'node:http'
import { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { createBodyRoom, readPayload } from '../../bridge-https/payload.ts'

t.test('nothing is kept or read of a body that is refused for its tiny pieces', async (t) => {
  const head = 'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'
  const pieces = '1\r\nx\r\n'.repeat(5_000)
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  t.teardown(() => socket.destroy())
  const server = createServer()
  const received = new Promise<IncomingMessage>((resolve) => server.once('request', resolve))
  server.emit('connection', socket)
  socket.push(head)
  const request = await received
  const reading = readPayload(request, 400_000, createBodyRoom(1_000_000))
  socket.push(pieces)
  t.match(await reading, { refused: { status: 400, headers: { connection: 'close' } } })
  await nextTurn()
  t.equal(request.readableLength, 0, 'the rest of this read')
  socket.push(pieces)
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  t.equal(request.readableLength, 0, 'further reads')
  t.ok(socket.isPaused())
})
