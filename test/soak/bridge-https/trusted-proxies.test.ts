import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { generate } from 'mqtt-packet'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { openClient, password } from '../../bridge-https/api.ts'
import { openStream } from '../../event-stream.ts'
import { startTestHub, type TestHub } from '../../start-hub.ts'

/*
 * Requests come from loopback addresses: those of 127.0.1.0/24 are proxies.
 */
const proxy = '127.0.1.1'
const by = (address: string) => ({ 'x-forwarded-for': `203.0.113.66, ${address}` })

t.test('failed log-ins count for the clients behind a trusted proxy', async (t) => {
  const hub = await start(t, { HUB_LOGIN_FAILURES: '4' })
  const send = openClient(t, hub)
  const guess = async (headers: Record<string, string>, from = proxy) => {
    const body = { email: `user-${Math.random()}@radio.example`, password }
    return (await send('POST', '/auth/login', { body, headers, from })).status
  }
  for (let nth = 0; nth < 4; nth++) t.equal(await guess(by('192.0.2.7')), 401)
  t.equal(await guess(by('192.0.2.7')), 429)
  t.equal(await guess(by('198.51.100.8')), 401, 'another client')
  t.equal(
    await guess({ forwarded: 'for=203.0.113.66, for=192.0.2.7' }),
    429,
    'the same one by the other header',
  )
  t.equal(await guess({ 'x-forwarded-for': '203.0.113.66, 192.0.2.7, 127.0.1.9' }), 429, 'a second proxy')

  // Whoever is no proxy has the address of the connection, whatever the headers say.
  for (let nth = 0; nth < 4; nth++) t.equal(await guess(by(`198.51.100.${nth}`), '127.0.0.9'), 401)
  t.equal(await guess(by('198.51.100.99'), '127.0.0.9'), 429)

  // A client sent the header that its proxy does not write: all such requests count for the proxy.
  for (let nth = 0; nth < 4; nth++)
    t.equal(await guess({ ...by('192.0.2.7'), forwarded: `for=198.51.100.${nth}` }), 401)
  t.equal(await guess({ ...by('192.0.2.7'), forwarded: 'for=198.51.100.99' }), 429)
  const doubts = hub.lines.filter(({ msg }) => msg === 'the headers of a proxy contradict each other')
  t.match(doubts, [{ remoteAddress: proxy, times: 1 }])
  t.ok(hub.lines.some((line) => line.msg === 'request' && line.remoteAddress === '192.0.2.7'))
})

t.test(
  'a client behind a proxy that has too many streams is sent away for a while, until one has ended',
  async (t) => {
    const hub = await start(t, { HUB_MAX_CONNECTIONS_PER_ADDRESS: '1', HUB_PUBLIC_PAGE: 'true' })
    const open = async (client: string) => {
      const reader = await openStream(t, hub, '/stream', { headers: by(client), from: proxy })
      await reader.until(() => reader.events.length > 0)
      return reader
    }
    const first = await open('192.0.2.1')
    t.match(first.events, [{ event: 'ready' }])
    t.match((await open('192.0.2.2')).events, [{ event: 'ready' }], 'another client')
    const second = await open('192.0.2.1')
    t.equal(second.status, 200)
    t.equal(second.retry(), 30_000)
    t.match(second.events, [{ event: 'bye', data: { reason: 'limit' } }])
    first.close()
    await hub.until(async () => (await open('192.0.2.1')).events[0]?.event === 'ready')
  },
)

t.test('a client cannot hide behind many header fields what its proxy adds', async (t) => {
  const hub = await start(t, {})
  const below = connect({ port: hub.httpsPort, host: '127.0.0.1', localAddress: proxy })
  const socket = connectTls({ socket: below, ca: readFileSync(hub.caPath), servername: 'localhost' })
  const byClient = ['X-Forwarded-For: 203.0.113.66', ...Array(3_000).fill('a:')]
  const fields = ['Host: x', ...byClient, 'X-Forwarded-For: 192.0.2.7', 'Connection: close']
  socket.write(`GET /topics HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`)
  await once(socket.resume(), 'close')
  const asked = () => hub.lines.find(({ path }) => path === '/topics')
  await hub.until(async () => asked() !== undefined)
  t.equal(asked()?.remoteAddress, '192.0.2.7')
})

t.test('MQTT over WebSocket through a trusted proxy has the address of the client', async (t) => {
  const hub = await start(t, { HUB_LOGIN_FAILURES: '2', HUB_MAX_CONNECTIONS_PER_ADDRESS: '2' })
  const open = (headers: Record<string, string>) => openWebSocket(t, hub, headers)
  // The connection has places for two of each client, and the proxy has as many clients as it likes.
  for (const client of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) {
    for (let nth = 0; nth < 2; nth++) t.type(await open(by(client)), WebSocket)
    t.equal(await open(by(client)), 503)
  }
  const refused = hub.lines.filter(({ msg }) => msg === 'connection refused')
  t.match(refused, [{ reason: 'max-connections-per-address', remoteAddress: '192.0.2.1' }, {}, {}])

  const connack = async (client: string) => {
    const socket = await open(by(client))
    if (typeof socket === 'number') return socket
    const login = { clientId: 'a', username: 'sub-a-1', password: Buffer.from('wrong') }
    const packet = { cmd: 'connect', protocolId: 'MQTT', protocolVersion: 4, clean: true, ...login } as const
    socket.send(generate(packet))
    const [answer] = await once(socket, 'message')
    await once(socket, 'close')
    return answer[3]
  }
  t.same(await inTurn(4, () => connack('192.0.2.4')), [4, 4, 3, 3])
  t.equal(await connack('192.0.2.5'), 4)
})

t.test(
  'a ban ends the WebSockets and streams of a client behind a trusted proxy, and lets none begin',
  async (t) => {
    const hub = await start(t, { HUB_PUBLIC_PAGE: 'true' })
    const [banned, other] = ['192.0.2.7', '192.0.2.8']
    const openBoth = async (client: string) => {
      const socket = await openWebSocket(t, hub, by(client))
      if (typeof socket === 'number') throw new Error(`status ${socket}`)
      const stream = await openStream(t, hub, '/stream', { headers: by(client), from: proxy })
      await stream.until(() => stream.events.length > 0)
      return { socket, stream }
    }
    const [ends, stays] = [await openBoth(banned), await openBoth(other)]
    const ended = once(ends.socket, 'close')
    await hub.ask('bans.add', { kind: 'address', value: `${banned}/32`, for: 3600, reason: 'a test' })
    await ended
    await ends.stream.until(ends.stream.hasEnded)
    t.equal(await openWebSocket(t, hub, by(banned)), 503)
    t.equal(stays.socket.readyState, WebSocket.OPEN)
    t.notOk(stays.stream.hasEnded())
  },
)

t.test(
  'requests count as connections of the clients behind a trusted proxy, while they are under way',
  async (t) => {
    const hub = await start(t, { HUB_MAX_CONNECTIONS_PER_ADDRESS: '2' })
    const ca = readFileSync(hub.caPath)
    const connection = async () => {
      const below = connect({ port: hub.httpsPort, host: '127.0.0.1', localAddress: proxy })
      const socket = connectTls({ socket: below, ca, servername: 'localhost' })
      t.teardown(() => socket.destroy())
      const statuses: number[] = []
      socket.setEncoding('latin1').on('data', (text: string) => {
        statuses.push(...[...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status)))
      })
      await once(socket, 'secureConnect')
      const status = async () => {
        await hub.until(async () => statuses.length > 0)
        return statuses.shift()
      }
      return {
        status,
        /** Begins a request. Resolves with 100 when the node waits for its body, which is `{}`. */
        begin(client: string) {
          const fields = ['Host: x', `X-Forwarded-For: ${client}`, 'Content-Type: application/json']
          const lines = ['POST /auth/login HTTP/1.1', ...fields, 'Expect: 100-continue', 'Content-Length: 2']
          socket.write(`${lines.join('\r\n')}\r\n\r\n`)
          return status()
        },
        finish() {
          socket.write('{}')
          return status()
        },
      }
    }
    const [first, second, third] = await Promise.all([connection(), connection(), connection()])
    t.equal(await first.begin('192.0.2.7'), 100)
    t.equal(await second.begin('192.0.2.7'), 100)
    await third.begin('192.0.2.7')
    t.equal(await third.status(), 503)
    const other = await connection()
    await other.begin('192.0.2.8')
    t.equal(await other.finish(), 400, 'another client')
    t.equal(await first.finish(), 400)
    await first.begin('192.0.2.7')
    t.equal(await first.finish(), 400, 'the place of an answered request is free')
    t.equal(await second.finish(), 400)
  },
)

/** Opens MQTT over WebSocket through the proxy. Resolves with the status of a refusal. */
function openWebSocket(t: Test, hub: TestHub, headers: Record<string, string>): Promise<WebSocket | number> {
  const options = { ca: readFileSync(hub.caPath), headers, localAddress: proxy, servername: 'localhost' }
  const socket = new WebSocket(`wss://127.0.0.1:${hub.httpsPort}/mqtt`, ['mqtt'], options)
  t.teardown(() => socket.terminate())
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(socket))
    socket.once('unexpected-response', (_request, { statusCode = 0 }) => resolve(statusCode))
    socket.once('error', reject)
  })
}

async function inTurn<T>(count: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let nth = 0; nth < count; nth++) results.push(await work())
  return results
}

function start(t: Test, env: Record<string, string>): Promise<TestHub> {
  const home = t.testdir({ 'hub.json': JSON.stringify({ trustedProxies: ['127.0.1.0/24'] }) })
  return startTestHub(t, { HUB_CONFIG: join(home, 'hub.json'), ...env })
}
