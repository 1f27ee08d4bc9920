import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, createServer, type TLSSocket } from 'node:tls'
import pino from 'pino'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { createCertificates } from '../../certs/certificates.ts'
import { ensureDevelopmentCertificates } from '../../certs/development.ts'
import { createConnectionBounds } from '../../listener/connection-bounds.ts'
import { guardServer, tlsOptions } from '../../listener/tls-server.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { secured } from '../bridge-https/raw.ts'
import { connect } from '../clients.ts'
import { startTestHub, type TestHub } from '../start-hub.ts'
import { lastingTicketKey } from '../ticket-keys.ts'
import { until } from '../until.ts'
import { clientHello } from './client-hello.ts'

const overWebSocket = (hub: TestHub) => ({ protocol: 'wss', port: hub.httpsPort, path: '/mqtt' }) as const

function open(t: Test, hub: TestHub, port: number): Promise<TLSSocket> {
  const socket = connectTls({ host: 'localhost', port, ca: readFileSync(hub.caPath) })
  t.teardown(() => socket.destroy())
  return secured(socket)
}

/** Asks for a WebSocket. Resolves with `open`, or with the HTTP status of the refusal. */
function upgrade(t: Test, hub: TestHub): Promise<number | 'open'> {
  const url = `wss://localhost:${hub.httpsPort}/mqtt`
  const websocket = new WebSocket(url, ['mqtt'], { ca: readFileSync(hub.caPath) })
  t.teardown(() => websocket.terminate())
  return new Promise((resolve, reject) => {
    websocket.once('open', () => resolve('open'))
    websocket.once('unexpected-response', (_request, response) => resolve(response.statusCode ?? 0))
    websocket.once('error', reject)
  })
}

async function refusals(hub: TestHub): Promise<Record<string, number>> {
  const { counters } = await hub.ask<{ counters: Record<string, number> }>('status')
  return Object.fromEntries(
    Object.entries(counters).flatMap(([name, value]) => {
      const [, reason] = /^hub_connections_refused_total\{reason=(max-.+)\}$/.exec(name) ?? []
      return reason === undefined || value === 0 ? [] : [[reason, value]]
    }),
  )
}

t.test('MQTT has one bound, over TCP and over WebSocket', async (t) => {
  const hub = await startTestHub(t, { HUB_MAX_CONNECTIONS: '2' })
  const login = await hub.subscriber('radio/#')
  const first = await connect(t, hub, login, overWebSocket(hub))
  const direct = await open(t, hub, hub.mqttPort)
  await t.rejects(open(t, hub, hub.mqttPort), 'over TCP there is no place left')
  t.equal(await upgrade(t, hub), 503, 'nor over WebSocket')
  t.same(await refusals(hub), { 'max-connections': 2 })

  direct.destroy()
  await until(async () => (await upgrade(t, hub)) === 'open')
  await first.client.endAsync()
  await until(() => isOpened(t, hub))
  t.pass('a place that is left is free for the other way')
})

t.test('so has each address', async (t) => {
  const hub = await startTestHub(t, { HUB_MAX_CONNECTIONS_PER_ADDRESS: '1' })
  const websocket = await connect(t, hub, await hub.subscriber('radio/#'), overWebSocket(hub))
  await t.rejects(open(t, hub, hub.mqttPort))
  t.equal(await upgrade(t, hub), 503)
  t.same(await refusals(hub), { 'max-connections-per-address': 2 })
  await websocket.client.endAsync()
  await until(() => isOpened(t, hub))
})

t.test('what has become MQTT takes no place of HTTPS, and the other way round', async (t) => {
  const hub = await startTestHub(t, { HUB_MAX_CONNECTIONS: '1' })
  await connect(t, hub, await hub.subscriber('radio/#'), overWebSocket(hub))
  const https = await open(t, hub, hub.httpsPort)
  https.write('GET /health HTTP/1.1\r\n\r\n')
  const [answer] = await once(https, 'data')
  t.match(String(answer), /^HTTP\/1\.1 200 /)
  await t.rejects(open(t, hub, hub.httpsPort), 'HTTPS is bounded by itself')
})

t.test('two connections from one port of a client are two, if they go to two addresses', async (t) => {
  const hub = await startTestHub(t, { HUB_HOST: '0.0.0.0', HUB_PROXY_PROTOCOL: 'true' })
  let localPort: number | undefined
  const through = async (host: string, client: string) => {
    const socket = connectTcp({ host, port: hub.httpsPort, localAddress: '127.0.0.1', localPort })
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
    localPort = socket.localPort
    socket.write(`PROXY TCP4 ${client} 192.0.2.1 5000 8443\r\n`)
    return secured(connectTls({ socket, rejectUnauthorized: false }))
  }
  const addressOf = (path: string) =>
    hub.lines.find((line) => line.msg === 'request' && line.path === path)?.remoteAddress
  const first = await through('127.0.0.1', '192.0.2.7')
  const second = await through('127.0.0.2', '192.0.2.8')
  for (const [socket, path] of [
    [first, '/first'],
    [second, '/second'],
  ] as const) {
    socket.write(`GET ${path} HTTP/1.1\r\n\r\n`)
    await hub.until(async () => addressOf(path) !== undefined)
  }
  t.equal(addressOf('/first'), '192.0.2.7')
  t.equal(addressOf('/second'), '192.0.2.8')
})

t.test('handshakes that begin at once begin in turns', async (t) => {
  const { begun, connected } = await startGuarded(t)
  const clients = await connected(Array.from({ length: 20 }, () => '127.0.0.1'))
  t.same(begun, [], 'none begins before its ClientHello is there to the last byte')
  for (const { finish } of clients) finish()
  await until(async () => begun.length === 20)
  const turns = begun.map(({ turn }) => turn)
  const most = Math.max(...turns.map((turn) => turns.filter((other) => other === turn).length))
  // The limit is 2, not 1: a turn that the test counts can overlap two turns of the server.
  t.ok(most <= 2, `${most} in one turn`)
})

t.test('an address with many handshakes holds up no other', async (t) => {
  const { begun, connected } = await startGuarded(t)
  const many = Array.from({ length: 60 }, () => '127.0.0.2')
  for (const { finish } of await connected([...many, '127.0.0.1'])) finish()
  await until(async () => begun.length === 61)
  const place = begun.findIndex(({ from }) => from === '127.0.0.1')
  t.ok(place < 10, `the other one was number ${place + 1}`)
})

t.test('who connects behind a flood of another address does not wait for all of it', async (t) => {
  const { begun, connect } = await startGuarded(t)
  for (const from of [...Array.from({ length: 90 }, () => '127.0.0.2'), '127.0.0.1']) connect(from)
  await until(async () => begun.length === 91)
  const place = begun.findIndex(({ from }) => from === '127.0.0.1')
  t.ok(place < 75, `it was number ${place + 1}`)
})

t.test('no handshake is expensive, also after the certificate was replaced', async (t) => {
  const { port, replaceCertificate } = await startGuarded(t)
  const agrees = (ecdhCurve: string) => {
    const socket = connectTls({ host: '127.0.0.1', port, ecdhCurve, rejectUnauthorized: false })
    t.teardown(() => socket.destroy())
    return secured(socket).then(
      () => true,
      () => false,
    )
  }
  for (const _ of ['as it was started', 'replaced']) {
    for (const group of ['X25519', 'P-256', 'P-384']) t.equal(await agrees(group), true, group)
    for (const group of ['ffdhe2048', 'ffdhe8192', 'P-521']) t.equal(await agrees(group), false, group)
    replaceCertificate()
  }
})

/** A guarded TLS server. `begun` lists the handshakes that have begun, each with its turn of the event loop. */
async function startGuarded(t: Test) {
  const { cert, key } = await ensureDevelopmentCertificates(t.testdir())
  const certificates = createCertificates({ certPath: cert, keyPath: key, log: pino({ level: 'silent' }) })
  let replaceCertificate = () => {}
  const tickets = lastingTicketKey()
  const server = createServer(tlsOptions({ certificates, tickets }))
  const begun: { from: string | undefined; turn: number }[] = []
  let turn = 0
  const count = () => {
    turn++
    if (server.listening) setImmediate(count)
  }
  // Add this listener before the call of `guardServer`. The guard takes the listener over, and calls it when a
  // handshake begins.
  server.on('connection', (socket) => begun.push({ from: socket.remoteAddress, turn }))
  const guard = guardServer(server, {
    certificates: {
      ...certificates,
      onChange(listener) {
        replaceCertificate = () => listener(certificates.current())
        certificates.onChange(listener)
      },
    },
    tickets,
    turnsPerHandshake: 2,
    proxyProtocol: false,
    proxyFrom: [],
    log: pino({ level: 'silent' }),
    metrics: createMetrics(),
    bounds: createConnectionBounds({ maxConnections: 100, maxConnectionsPerAddress: 0 }),
  })
  const accepted: Socket[] = []
  server.on('connection', (socket) => accepted.push(socket))
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  count()
  t.teardown(() => {
    server.close()
    guard.destroyAll()
    certificates.close()
  })
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const hello = await clientHello(t)

  /** A client that has sent `sent`: its whole ClientHello, or the beginning of it. */
  function connect(localAddress: string, sent = hello): Socket {
    const socket = connectTcp({ host: '127.0.0.1', port, localAddress })
    t.teardown(() => socket.destroy())
    socket.on('error', () => {})
    socket.setNoDelay(true)
    socket.write(sent)
    return socket
  }

  return {
    begun,
    port,
    connect,
    replaceCertificate: () => replaceCertificate(),
    /** Clients whose ClientHello has arrived without its last byte. `finish` sends the byte. */
    async connected(from: readonly string[]) {
      const clients = from.map((address) => {
        const socket = connect(address, hello.subarray(0, -1))
        return { finish: () => void socket.write(hello.subarray(-1)) }
      })
      const arrived = () => accepted.filter(({ bytesRead }) => bytesRead === hello.length - 1)
      await until(async () => arrived().length === from.length)
      return clients
    },
  }
}

function isOpened(t: Test, hub: TestHub): Promise<boolean> {
  return open(t, hub, hub.mqttPort).then(
    () => true,
    () => false,
  )
}
