import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectTls } from 'node:tls'
import { generate, parser } from 'mqtt-packet'
import t, { type Test } from 'tap'
import { type ClientOptions, WebSocket } from 'ws'
import { connect, connectPublisher, closed as disconnected } from '../clients.ts'
import { institutions, playing, playingTopic, station } from '../events.ts'
import { connectPacket } from '../raw-client.ts'
import { type Issued, startTestHub, type TestHub } from '../start-hub.ts'
import { exchange } from './raw.ts'

const [own = ''] = institutions

function overWebSocket(hub: TestHub, options = {}) {
  return { protocol: 'wss', port: hub.httpsPort, path: '/mqtt', ...options } as const
}

/** The node of the tests that need none of their own. They run one after the other. */
const shared = startTestHub(t)

t.test('MQTT over WebSocket has the rules of MQTT over TLS', async (t) => {
  const hub = await shared
  const login = await hub.publisher([own])
  const app = await connect(t, hub, await hub.subscriber('radio/+/track/#'), overWebSocket(hub))
  const [granted] = await app.client.subscribeAsync('radio/+/track/playing', { qos: 1 })
  t.equal(granted?.qos, 1)
  const denied = await app.client.subscribeAsync('radio/#', { qos: 1 }).catch((error) => error.message)
  t.match(denied, /Unspecified error|128|denied/i)

  const direct = await connectPublisher(t, hub, login, own)
  const report = await direct.publish(playing(station()))
  const live = await app.received.until(() => true)
  t.equal(live.json.id, report.id)
  t.equal(live.topic, playingTopic(station()))

  const late = await connect(t, hub, await hub.subscriber('radio/#'), overWebSocket(hub))
  await late.client.subscribeAsync('radio/#')
  t.equal((await late.received.until(() => true)).packet.retain, true)

  const publisher = await connect(t, hub, login, overWebSocket(hub))
  await publisher.client.subscribeAsync(`feedback/${own}`, { qos: 1 })
  // Larger than a WebSocket frame of most clients, and larger than a TLS record.
  const event = playing(station(), { title: 'x'.repeat(300_000) })
  await publisher.client.publishAsync(`inbox/${own}`, JSON.stringify(event), { qos: 2 })
  t.equal((await publisher.received.until(() => true)).json.outcome, 'published')
  t.equal(
    String((await app.received.until(({ json }) => json.title === event.title)).json.title).length,
    300_000,
  )

  const wrong: Issued = { username: login.username, password: 'wrong' }
  await t.rejects(connect(t, hub, wrong, overWebSocket(hub)), { code: 4 })
  await t.rejects(connect(t, hub, login, overWebSocket(hub, { protocolVersion: 5 })))
  const clients = await hub.ask<{ username: string; address: string }[]>('clients.list')
  t.equal(clients.filter(({ address }) => address === '127.0.0.1').length, 4)

  await hub.ask('credentials.revoke', { username: login.username })
  await disconnected(publisher.client)
  t.pass('a revoked credential is disconnected here as well')
})

t.test('other sub-protocols and paths are refused', async (t) => {
  const hub = await shared
  t.equal(await outcome(t, hub, '/mqtt', []), 400, 'no sub-protocol [MQTT-6.0.0-3]')
  t.equal(await outcome(t, hub, '/mqtt', ['mqttv3.1']), 400)
  t.equal(await outcome(t, hub, '/mqtt', ['chat', 'superchat']), 400)
  t.equal(await outcome(t, hub, '/other', ['mqtt']), 404)
  t.equal(await outcome(t, hub, '/mqtt/', ['mqtt']), 404)
  t.equal(await outcome(t, hub, '/mqtt', ['chat', 'mqtt']), 'mqtt', 'one of several')
  t.equal(await outcome(t, hub, '/mqtt?x=1', ['mqtt']), 'mqtt')
})

t.test('an offer of another protocol is ignored', async (t) => {
  const hub = await shared
  for (const [start, upgrade, status] of [
    ['GET /health', 'h2c', 200],
    ['POST /events/de.org.hub.v1.radio.track.playing', 'TLS/1.2', 401],
    ['GET /mqtt', 'h2c', 426],
  ] as const) {
    const request = `${start} HTTP/1.1\r\nHost: hub\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\n\r\n`
    t.match(await exchange(t, hub, request), new RegExp(`^HTTP/1\\.1 ${status} `), `${start} ${upgrade}`)
  }
})

t.test('a request for /mqtt without an upgrade is told to upgrade', async (t) => {
  const hub = await shared
  const answer = await exchange(
    t,
    hub,
    'GET /mqtt HTTP/1.1\r\nHost: hub\r\nSec-WebSocket-Version: 13\r\n\r\n',
  )
  t.match(answer, /^HTTP\/1\.1 426 /)
  t.match(answer, /\r\nupgrade: websocket\r\n/i)
  t.match(answer, /\r\nconnection: upgrade, close\r\n/i)
})

t.test('upgrades without a place have one line in the log', async (t) => {
  // Each upgrade begins as an HTTPS connection, which this bound also limits. After a refused upgrade, its connection
  // can still be closing when the next upgrade comes. With a bound of 1, the node would then refuse the connection of
  // the next upgrade, and could not answer with 503.
  const hub = await startTestHub(t, { HUB_MAX_CONNECTIONS_PER_ADDRESS: '5' })
  const login = await hub.subscriber('radio/#')
  await Promise.all(Array.from({ length: 5 }, () => connect(t, hub, login)))
  for (let count = 0; count < 20; count++) t.equal(await outcome(t, hub, '/mqtt', ['mqtt']), 503)
  t.match(
    hub.lines.filter(({ msg }) => msg === 'connection refused'),
    [{ reason: 'max-connections-per-address', times: 1 }],
  )
})

t.test('packets may be cut anywhere between frames, or share one', async (t) => {
  const hub = await shared
  const login = await hub.publisher([own])
  const feedback = `feedback/${own}`
  const packets = Buffer.concat([
    generate(
      connectPacket({ clientId: 'cut', username: login.username, password: Buffer.from(login.password) }),
    ),
    generate({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: feedback, qos: 1 }] }),
    generate({
      cmd: 'publish',
      topic: `inbox/${own}`,
      qos: 1,
      messageId: 2,
      dup: false,
      retain: false,
      payload: Buffer.from(JSON.stringify(playing(station()))),
    }),
  ])
  const inParts = (size: number) =>
    Array.from({ length: Math.ceil(packets.length / size) }, (_, index) =>
      packets.subarray(index * size, (index + 1) * size),
    )
  for (const [how, parts] of [
    ['all in one message', [packets]],
    ['each byte a message', inParts(1)],
    ['seven bytes a message', inParts(7)],
  ] as const) {
    const websocket = await open(t, hub)
    const answers = answersOf(websocket)
    for (const part of parts) websocket.send(part)
    t.same(await answers(4), ['connack', 'puback', 'publish', 'suback'], how)
  }
  const fragments = await open(t, hub)
  const answers = answersOf(fragments)
  for (const part of inParts(100)) fragments.send(part, { fin: false })
  fragments.send(Buffer.alloc(0), { fin: true })
  t.same(await answers(4), ['connack', 'puback', 'publish', 'suback'], 'a message of many frames')
})

t.test('who reads slowly gets what has waited in messages of at most 1 MiB', async (t) => {
  const hub = await startTestHub(t, {
    HUB_OUTGOING_BUFFER: String(64 * 1024 * 1024),
  })
  const websocket = await open(t, hub)
  const { username, password } = await hub.subscriber('radio/#')
  const login = { clientId: 'slow', username, password: Buffer.from(password) }
  const parse = parser()
  let largest = 0
  let titles = 0
  websocket.on('message', (message: Buffer) => {
    largest = Math.max(largest, message.length)
    parse.parse(message)
  })
  const granted = new Promise((resolve) => {
    parse.on('packet', ({ cmd }) => {
      if (cmd === 'suback') resolve(cmd)
      if (cmd === 'publish') titles++
    })
  })
  websocket.send(
    Buffer.concat([
      generate(connectPacket({ ...login })),
      generate({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'radio/#', qos: 0 }] }),
    ]),
  )
  await granted
  websocket.pause()
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const title = 'x'.repeat(390_000)
  for (let nth = 0; nth < 25; nth++) await publisher.publish(playing(station(), { title: `${nth}${title}` }))
  websocket.resume()
  while (titles < 25) await once(websocket, 'message')
  t.ok(largest > 400_000, 'some came together')
  t.ok(largest <= 1024 * 1024, `${largest} bytes`)
})

t.test(
  'text frames, huge messages and wrong frames end the connection, with the code that says why',
  async (t) => {
    const hub = await shared
    const connect311 = generate(connectPacket({ clientId: 'text' }))
    for (const sent of ['hello', connect311.toString('latin1')]) {
      const text = await open(t, hub)
      const answers: unknown[] = []
      text.on('message', (message) => answers.push(message))
      text.send(sent)
      t.equal(await closed(text), 1003)
      t.same(answers, [], 'not read as MQTT, even when it could be')
    }
    const huge = await open(t, hub)
    huge.send(Buffer.alloc(1024 * 1024 + 1))
    t.equal(await closed(huge), 1009)
    const socket = connectTls({ host: 'localhost', port: hub.httpsPort, ca: readFileSync(hub.caPath) })
    const wrong = await open(t, hub, { createConnection: () => socket })
    socket.write(Buffer.from('8b8000000000', 'hex'))
    t.equal(await closed(wrong), 1002, 'there is no frame of this kind')
    const { client } = await connect(t, hub, await hub.subscriber('radio/#'), overWebSocket(hub))
    t.ok(client.connected, 'nobody else is affected')
  },
)

t.test('before log-in a message is as small as a CONNECT, and comes in few pieces', async (t) => {
  const hub = await shared
  const before = await cutForProtocol(hub)
  const large = await open(t, hub)
  large.send(Buffer.alloc(900_000, 0x10))
  await closed(large)
  const fragments = await open(t, hub)
  for (let count = 0; count < 2000; count++) fragments.send(Buffer.of(0x10), { fin: false })
  await closed(fragments)
  const unfinished = await open(t, hub)
  // The first bytes of a CONNECT, which announce 65,000 more.
  unfinished.send(Buffer.from('10e8fb03', 'hex'))
  for (let count = 0; count < 2000; count++) unfinished.send(Buffer.of(0))
  await closed(unfinished)
  t.ok((await cutForProtocol(hub)) - before >= 2)
})

t.test(
  'before log-in a message that announces more than a CONNECT may have ends the connection at once',
  async (t) => {
    const hub = await shared
    const before = await cutForProtocol(hub)
    const upgrade = [
      ...['GET /mqtt HTTP/1.1', 'host: localhost', 'connection: upgrade', 'upgrade: websocket'],
      ...['sec-websocket-version: 13', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=='],
      ...['sec-websocket-protocol: mqtt', '\r\n'],
    ].join('\r\n')
    // Headers of frames with a mask of zeros: 65,537 bytes, and 65,536 behind a fragment of one byte.
    const whole = '82ff000000000001000100000000'
    const fragments = '02810000000010' + '80ff000000000001000000000000'
    for (const frames of [whole, fragments]) {
      const answer = await exchange(t, hub, Buffer.concat([Buffer.from(upgrade), Buffer.from(frames, 'hex')]))
      t.match(answer, /^HTTP\/1\.1 101 /)
    }
    t.equal((await cutForProtocol(hub)) - before, 2)
  },
)

t.test('what comes behind the close of the hub breaks no protocol', async (t) => {
  const hub = await shared
  const before = await cutForProtocol(hub)
  const ca = readFileSync(hub.caPath)
  const socket = connectTls({ host: 'localhost', port: hub.httpsPort, ca })
  // As paho-mqtt 1.6 answers a close: without a mask.
  socket.on('data', (chunk) => {
    if (chunk.includes(closeFrame)) socket.write(Buffer.of(0x88, 0))
  })
  const websocket = new WebSocket('wss://localhost/mqtt', ['mqtt'], { createConnection: () => socket })
  await new Promise((resolve, reject) => websocket.once('open', resolve).once('error', reject))
  const wrong = { clientId: 'wrong', username: 'sub-a-1', password: Buffer.from('wrong') }
  websocket.send(generate(connectPacket(wrong)))
  await closed(websocket)
  await hub.until(async () => (await hub.ask<{ connections: number }>('status')).connections === 0)
  t.equal(await cutForProtocol(hub), before)
})

t.test('MQTT over WebSocket counts as MQTT, and ends with the hub', async (t) => {
  const hub = await startTestHub(t, { HUB_MAX_CONNECTIONS: '1' })
  const websocket = await open(t, hub)
  const { connections } = await hub.ask<{ connections: number }>('status')
  t.equal(connections, 1)
  const ended = closed(websocket)
  await hub.close()
  await ended
  t.pass('closed')
})

/** A frame of the hub that closes a WebSocket with code 1000. */
const closeFrame = Buffer.of(0x88, 2, 0x03, 0xe8)

/** How many connections the node has cut for what they sent. */
async function cutForProtocol(hub: TestHub): Promise<number> {
  const { counters } = await hub.ask<{ counters: Record<string, number> }>('status')
  return counters['hub_connections_cut_total{reason=protocol}'] ?? 0
}

function start(
  t: Test,
  hub: TestHub,
  path: string,
  protocols: string[],
  options: ClientOptions = {},
): WebSocket {
  const ca = readFileSync(hub.caPath)
  const websocket = new WebSocket(`wss://localhost:${hub.httpsPort}${path}`, protocols, { ca, ...options })
  t.teardown(() => websocket.terminate())
  return websocket
}

/** The accepted sub-protocol, or the HTTP status of the refusal. */
function outcome(t: Test, hub: TestHub, path: string, protocols: string[]): Promise<number | string> {
  const websocket = start(t, hub, path, protocols)
  return new Promise((resolve, reject) => {
    websocket.once('open', () => resolve(websocket.protocol))
    websocket.once('unexpected-response', (_request, response) => {
      response.resume()
      t.match(response.headers['content-type'], /^application\/json/)
      resolve(response.statusCode ?? 0)
    })
    websocket.once('error', reject)
  })
}

async function open(t: Test, hub: TestHub, options: ClientOptions = {}): Promise<WebSocket> {
  const websocket = start(t, hub, '/mqtt', ['mqtt'], options)
  await new Promise((resolve, reject) => websocket.once('open', resolve).once('error', reject))
  websocket.on('error', () => {})
  return websocket
}

/** Returns a function that resolves with the sorted types of the first `count` packets. */
function answersOf(websocket: WebSocket): (count: number) => Promise<string[]> {
  const kinds: string[] = []
  let failure: Error | undefined
  let wake = () => {}
  const reader = parser({ protocolVersion: 4 })
  reader.on('packet', ({ cmd }) => void kinds.push(cmd))
  websocket.on('message', (data, isBinary) => {
    if (isBinary && Buffer.isBuffer(data)) reader.parse(data)
    else failure = new Error('not a binary message')
    wake()
  })
  websocket.on('close', () => {
    failure = new Error(`closed after ${kinds}`)
    wake()
  })
  return async (count) => {
    while (kinds.length < count && failure === undefined) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    if (failure !== undefined) throw failure
    return kinds.slice(0, count).sort()
  }
}

function closed(websocket: WebSocket): Promise<unknown> {
  return new Promise((resolve) => websocket.once('close', resolve))
}
