import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { connect } from 'node:net'
import t from 'tap'
import { createRoundRobin } from '../../bridge-https/round-robin.ts'

t.test('bytes behind an upgrade do not reach the parser', async (t) => {
  const server = createSecureServer()
  // The round robin takes this listener together with that of Node's parser.
  const parsed: Buffer[] = []
  server.on('secureConnection', (socket) => socket.on('data', (bytes: Buffer) => void parsed.push(bytes)))
  const roundRobin = createRoundRobin(server)
  // A TLS server that gets its connections without TLS needs no certificate.
  const plain = createServer().removeAllListeners('connection')
  plain.on('connection', (socket) => server.emit('secureConnection', socket))
  const left = new Promise<string>((resolve) => {
    server.on('upgrade', (_request, socket, head) => {
      resolve(Buffer.concat([head, roundRobin.leave(socket)]).toString())
      socket.on('data', () => socket.end()).resume()
    })
  })
  plain.listen(0, '127.0.0.1')
  await once(plain, 'listening')
  t.teardown(() => void plain.close())
  const address = plain.address()
  const client = connect(typeof address === 'object' && address ? address.port : 0, '127.0.0.1')
  t.teardown(() => client.destroy())
  const head = 'GET / HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
  client.write(`${head}frames`)
  t.equal(await left, 'frames')
  // The answer to a later byte comes behind all steps that were due.
  client.write('x')
  client.resume()
  await once(client, 'end')
  t.equal(Buffer.concat(parsed).toString(), head)
})
