import { EventEmitter, once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { connect } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import t from 'tap'
import { createRoundRobin } from '../../bridge-https/round-robin.ts'
import { stall } from '../stall.ts'
import { startTestHub } from '../start-hub.ts'
import { until } from '../until.ts'
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

/** A server with a parser that takes each step for one request. `handle` gets the number of its connection. */
function openServer(handle: (connection: number) => void) {
  const server = new EventEmitter()
  const parsed: number[] = []
  const turns = { now: 0, steps: [] as number[] }
  const step = () => {
    turns.steps[turns.now] = (turns.steps[turns.now] ?? 0) + 1
  }
  const count = () => {
    turns.now++
    timer = setImmediate(count)
  }
  let timer = setImmediate(count)
  let connections = 0
  server.on('request', (request: { connection: number }, response: EventEmitter) => {
    step()
    handle(request.connection)
    response.emit('close')
  })
  createRoundRobin(server as never)

  return {
    parsed,
    turns,
    close: () => clearImmediate(timer),
    /** A connection on which these bytes have come. */
    receive(bytes: string, complete = true): void {
      const connection = connections++
      const socket = new Duplex({ read() {} })
      socket.on('data', ({ length }: Buffer) => {
        step()
        parsed.push(length)
        const response = Object.assign(new EventEmitter(), { socket })
        server.emit('request', { socket, complete, connection }, response)
      })
      server.emit('secureConnection', socket)
      socket.push(bytes)
    },
  }
}

const empty = 'GET / HTTP/1.1\r\n\r\n'

t.test('connections take turns, one request of each, however many have come', async (t) => {
  const handled: number[] = []
  const server = openServer((connection) => handled.push(connection))
  t.teardown(server.close)
  for (let connection = 0; connection < 3; connection++) server.receive(empty.repeat(50))
  await until(() => handled.length === 150)
  t.same(
    handled,
    Array.from({ length: 150 }, (_, nth) => nth % 3),
  )
})

t.test('a turn of the event loop has few steps, and none behind one that takes long', async (t) => {
  for (const ms of [0, 6]) {
    const handledIn: number[] = []
    const server = openServer(() => {
      handledIn.push(server.turns.now)
      stall(ms)
    })
    t.teardown(server.close)
    for (let connection = 0; connection < 100; connection++) server.receive(empty)
    await until(() => handledIn.length === 100)
    t.ok(Object.values(server.turns.steps).every((steps) => steps <= 64))
    if (ms > 0) t.equal(new Set(handledIn).size, 100)
  }
})

t.test('a body is parsed in small pieces', async (t) => {
  const server = openServer(() => {})
  t.teardown(server.close)
  server.receive(`${empty}${'x'.repeat(20_000)}`, false)
  const bytes = () => server.parsed.reduce((sum, length) => sum + length, 0)
  await until(() => bytes() === empty.length + 20_000)
  t.ok(server.parsed.every((length) => length <= 4096))
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
