import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { connect } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import t from 'tap'
import { createRoundRobin } from '../../bridge-https/round-robin.ts'
import { startTestHub } from '../start-hub.ts'
import { between } from '../words.ts'

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
    server.on('upgrade', async (_request, socket, head) => {
      resolve(Buffer.concat([head, await roundRobin.leave(socket)]).toString())
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

const upgrade = between(`
  GET /mqtt HTTP/1.1 | Host: hub | Connection: Upgrade | Upgrade: websocket | Sec-WebSocket-Version: 13 |
  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ== | Sec-WebSocket-Protocol: mqtt
`).join('\r\n')

/** Node frees the parser of a connection after each of these. The client sends `then` when the hub has read `first`. */
const lastRequests: Record<string, [first: string, then?: string]> = {
  CONNECT: ['CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n'],
  'an upgrade with a body': [`${upgrade}\r\nContent-Length: 10\r\n\r\n12345`, '67890'],
  'an upgrade with a body in chunks': [
    `${upgrade}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n`,
    '0\r\n\r\n',
  ],
}

for (const [what, [first, then]] of Object.entries(lastRequests)) {
  t.test(`requests behind ${what} reach neither a freed parser nor another connection`, async (t) => {
    const hub = await startTestHub(t)
    const ca = readFileSync(hub.caPath)
    const open = async () => {
      const socket = connectTls({ host: 'localhost', port: hub.httpsPort, ca })
      t.teardown(() => socket.destroy())
      await once(socket, 'secureConnect')
      return socket
    }
    const behind = 'GET /unknown HTTP/1.1\r\nHost: hub\r\n\r\n'.repeat(20)
    for (let round = 0; round < 5; round++) {
      const attackers = await Promise.all(Array.from({ length: 5 }, open))
      for (const socket of attackers) {
        socket.on('error', () => undefined).resume()
        socket.write(then === undefined ? first + behind : first)
      }
      if (then !== undefined) {
        await answersOf(await open())
        for (const socket of attackers) socket.write(then + behind)
      }
      // Each of them gets a parser that is free.
      const others = await Promise.all(Array.from({ length: 10 }, open))
      const answers = await Promise.all(others.map(answersOf))
      t.same(answers, Array(10).fill(['HTTP/1.1 200']), 'one answer to one request')
      for (const socket of attackers) socket.destroy()
    }
  })
}

/** Asks for what always answers 200, and resolves with the first line of each answer that comes. */
async function answersOf(socket: TLSSocket): Promise<readonly string[]> {
  let got = ''
  socket.setEncoding('utf8').on('data', (text: string) => {
    got += text
  })
  socket.write('GET /livez HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n')
  await once(socket, 'close')
  return got.match(/HTTP\/1\.1 \d+/g) ?? []
}
