import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { createRoundRobin } from '../../bridge-https/round-robin.ts'
import { startTestHub } from '../start-hub.ts'

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

t.test('requests behind a CONNECT reach neither a freed parser nor another connection', async (t) => {
  const hub = await startTestHub(t)
  const ca = readFileSync(hub.caPath)
  const open = async () => {
    const socket = connectTls({ host: 'localhost', port: hub.httpsPort, ca })
    t.teardown(() => socket.destroy())
    await once(socket, 'secureConnect')
    return socket
  }
  const head = 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n'
  const behind = 'GET /unknown HTTP/1.1\r\nHost: hub\r\n\r\n'.repeat(20)
  const others = await Promise.all(Array.from({ length: 10 }, open))
  for (let round = 0; round < 5; round++) {
    const attackers = await Promise.all(Array.from({ length: 5 }, open))
    const ended = attackers.map((socket) => once(socket.resume(), 'close'))
    for (const socket of attackers) socket.write(head + behind)
    await Promise.all(ended)
  }
  for (const other of others) {
    let got = ''
    other.setEncoding('utf8').on('data', (text: string) => {
      got += text
    })
    other.write('GET /livez HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n')
    await once(other, 'end')
    t.same(got.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200'], 'one answer to one request')
  }
})
