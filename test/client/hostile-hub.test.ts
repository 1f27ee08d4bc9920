import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { createPublisherOverHttps } from '../../client/https-publisher.ts'
import { type ClientError, connectPublisher, connectSubscriber, EventRefused } from '../../client/node.ts'
import { hourlyLogins } from '../../client/reader-logins.ts'
import { shareCertificates } from '../certificates.ts'
import { control, data, institutions, playing, station } from '../events.ts'
import { listen } from '../listen.ts'
import { temporaryDirectory } from '../start-hub.ts'
import { words } from '../words.ts'
import { openScriptedBroker, type Turn } from './scripted-broker.ts'
import { openSlowLine } from './slow-line.ts'
import { largeMessage, openWebSocketBroker } from './websocket-broker.ts'

/*
 * A hub that does what no hub does, by mistake or on purpose: the library tells it, goes on, and holds no more than it
 * must. Each script misbehaves on the first connection and is a hub on the second.
 */

const [own = ''] = institutions

t.test(
  'a hub that answers pings and acknowledges nothing is told of, and the event sent again',
  async (t) => {
    mock.timers.enable({ apis: ['setInterval'] })
    t.teardown(() => mock.timers.reset())
    const broker = await openScriptedBroker(t, ({ packet, connection, proceed }) => {
      if (connection > 1 || packet.cmd !== 'publish') proceed()
    })
    const problems: string[] = []
    const published = open(t, broker, problems).publish(playing(station()))
    await broker.count(1)
    // Forty seconds, in which the hub answers the pings.
    for (let second = 0; second < 40; second++) {
      mock.timers.tick(1_000)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    t.match(await published, { outcome: 'published' })
    t.match(problems, [/: the hub acknowledges nothing$/])
    t.equal(broker.published.length, 2, 'sent again once')
    t.same(
      broker.published[0]?.payload,
      broker.published[1]?.payload,
      'unchanged, so that the hub takes both as one',
    )
  },
)

t.test('a hub that is slow, but acknowledges one event after the other, is not left', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const held: (() => void)[] = []
  const broker = await openScriptedBroker(t, ({ packet, proceed }) => {
    if (packet.cmd === 'publish') held.push(proceed)
    else proceed()
  })
  const problems: string[] = []
  const publisher = open(t, broker, problems)
  const all = Promise.all([1, 2, 3].map((nth) => publisher.publish(playing(station(), { title: `${nth}` }))))
  await broker.count(3)
  for (const proceed of held) {
    for (let second = 0; second < 25; second++) {
      mock.timers.tick(1_000)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    proceed()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.equal((await all).length, 3)
  t.same(problems, [])
})

t.test('a line that takes 80 s for a large event is slow, not dead', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const broker = await openScriptedBroker(t, ({ proceed }) => proceed())
  const line = await openSlowLine(t, Number(new URL(broker.url).port), 5_000)
  const problems: string[] = []
  const publisher = open(t, { ...broker, url: `mqtts://localhost:${line.port}` }, problems)
  t.match(await publisher.check(playing(station())), { outcome: 'published' })
  line.slowDown()
  let isReported = false
  const published = publisher.publish(playing(station(), { title: 'x'.repeat(400_000) }))
  void published.then(() => {
    isReported = true
  })
  for (let second = 0; second < 100 && !isReported; second++) {
    mock.timers.tick(1_000)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  t.same(problems, [])
  t.match(await published, { outcome: 'published' })
  t.equal(broker.published.length, 2, 'sent once')
})

const huge = 0x7f_ff_ff
for (const [what, misbehave] of Object.entries<(turn: Turn) => void>({
  'a packet without end': ({ write }) => {
    write(Uint8Array.of(0x30, 0xff, 0xff, 0xff, 0x7f))
    for (let nth = 0; nth < 4; nth++) write(new Uint8Array(1024 * 1024))
  },
  'a report of 8 MiB': ({ write }) => {
    write(Uint8Array.of(0x30, 0x80, 0x80, 0x80, 0x04))
    write(new Uint8Array(huge))
  },
  'a message at QoS 2': ({ send }) =>
    send({ cmd: 'publish', topic: 'x', payload: 'x', qos: 2, messageId: 1, dup: false, retain: false }),
  'a message that ends within its topic': ({ write }) => write(Uint8Array.of(0x30, 3, 0, 2, 0x78)),
  'a message without the packet id of its QoS': ({ write }) => write(Uint8Array.of(0x32, 4, 0, 1, 0x78, 0)),
  'a message at QoS 3': ({ write }) => write(Uint8Array.of(0x36, 5, 0, 1, 0x78, 0, 1)),
  'a second CONNACK': ({ send }) => send({ cmd: 'connack', returnCode: 0, sessionPresent: true }),
})) {
  t.test(`${what} ends the connection, and the event goes out on the next one`, async (t) => {
    const broker = await openScriptedBroker(t, (turn) => {
      if (turn.connection === 1 && turn.packet.cmd === 'publish') misbehave(turn)
      else turn.proceed()
    })
    const problems: string[] = []
    t.match(await open(t, broker, problems).publish(playing(station())), { outcome: 'published' })
    t.equal(problems.length, 1)
  })

  t.test(`${what} ends the connection of a subscriber, which comes back`, async (t) => {
    const broker = await openScriptedBroker(t, (turn) => {
      turn.proceed()
      if (turn.connection === 1 && turn.packet.cmd === 'subscribe') misbehave(turn)
    })
    const states: string[] = []
    const subscriber = connectSubscriber({
      ...loginOf(broker),
      filters: ['radio/#'],
      onProblem: ({ code }) => states.push(code),
    })
    t.teardown(subscriber.close)
    await new Promise<void>((resolve) => {
      subscriber.on('state', (state) => {
        states.push(state)
        if (state === 'live' && states.includes('lost')) resolve()
      })
    })
    t.same(states, ['live', 'connection.lost', 'lost', 'live'])
  })
}

t.test('events whose fields are anything but right stop no subscriber', async (t) => {
  const odd: unknown[] = [
    null,
    7,
    -0,
    1e308,
    '',
    'x',
    true,
    [],
    {},
    { toString: 7, valueOf: 7 },
    [[{ toString: 7 }]],
    '\ud83c',
    '2026',
  ]
  const fields = words(`event name state time validUntil start length title artist media text`)
  const right = [control(station()), playing(station()), data(station())]
  const broker = await openScriptedBroker(t, ({ packet, send, proceed }) => {
    proceed()
    if (packet.cmd !== 'subscribe') return
    const tell = (event: unknown) => {
      const payload = JSON.stringify(event)
      send({ cmd: 'publish', topic: 'radio/one/track/playing', payload, qos: 0, dup: false, retain: false })
    }
    for (const event of right)
      for (const name of fields) for (const value of odd) tell({ ...event, [name]: value })
    for (const value of odd) tell(value)
    send({ cmd: 'publish', topic: '\u0000/#', payload: '\ud800', qos: 0, dup: false, retain: false })
    tell(playing(station(), { title: 'The last one' }))
  })
  const problems: string[] = []
  const subscriber = connectSubscriber({
    ...loginOf(broker),
    filters: ['radio/#'],
    onProblem: ({ message }) => problems.push(message),
  })
  t.teardown(subscriber.close)
  for await (const { event } of subscriber) if ('title' in event && event.title === 'The last one') break
  t.same(problems, [])
})

t.test('answers over HTTPS that are anything but right are no log-in, and no crash', async (t) => {
  const odd = { toString: 7, valueOf: 7 }
  const answering = (body: unknown, status = 200) => ({
    status,
    body,
    retryAfter: undefined,
    date: undefined,
  })
  const login = { username: 'page', password: 'p', expiresAt: '2026-01-31T12:00:00Z' }
  const logIn = (fields: object) =>
    hourlyLogins(async () => answering({ ...login, ...fields }), 'https://hub').logIn(false)
  t.match(await logIn({ expiresAt: odd }), { username: 'page' })
  // mqtt.js cannot carry it, and throws.
  t.match(await logIn({ username: 'x'.repeat(70_000) }), { isRefused: false })
  t.match(await logIn({ password: odd }), { isRefused: false })

  const publisher = createPublisherOverHttps(
    { url: 'https://hub', email: 'e', password: 'p' },
    async (_method, url) =>
      url.endsWith('/auth/login')
        ? answering({ token: 't', refreshToken: 'r', expiresIn: 3600 })
        : answering({ statuses: { published: odd, blocked: odd }, errors: [{ path: odd }] }, 201),
  )
  await t.rejects(publisher.publish(playing(station())), { name: 'EventRefused', outcome: 'failed' })
})

t.test('a proxy that says to ask again at once is not asked without a pause', async (t) => {
  const home = await temporaryDirectory(t)
  await shareCertificates(home)
  const [key, cert] = ['server-key.pem', 'server.pem'].map((name) => readFileSync(`${home}/${name}`))
  const at: number[] = []
  const server = createServer({ key, cert }, (_request, response) => {
    at.push(performance.now())
    response.writeHead(503, { 'retry-after': '0' }).end()
    server.emit('asked')
  })
  const port = await listen(t, server)
  const subscriber = connectSubscriber({
    url: `https://localhost:${port}`,
    ca: `${home}/ca.pem`,
    filters: ['radio/#'],
    onProblem: () => {},
  })
  t.teardown(subscriber.close)
  while (at.length < 3) await once(server, 'asked')
  const [first = 0, second = 0, third = 0] = at
  t.ok(Math.min(second - first, third - second) > 900, 'a second at least')
})

t.test('many packets in one message of a WebSocket are no large packet', async (t) => {
  const { problems, subscriber } = await openOverWebSocket(t, (send) => {
    for (const numbers of [[1], [2, 3, 4], [5, 6, 7]]) {
      send(Buffer.concat(numbers.map((nth) => largeMessage(nth, 900_000))))
    }
  })
  const heard: string[] = []
  for await (const { livestreamId } of subscriber) if (heard.push(livestreamId) === 7) break
  t.same(heard, ['1', '2', '3', '4', '5', '6', '7'])
  t.same(problems, [])
})

for (const [what, bytes, reason] of [
  ['a packet of 3 MiB in one message', largeMessage(1, 3 * 1024 * 1024), /more than 2097152 bytes$/],
  ['a message of 20 MiB', Buffer.concat(Array(20).fill(largeMessage(1, 1024 * 1024))), /payload size/],
] as const) {
  t.test(`${what} of a WebSocket ends the connection`, async (t) => {
    const { problems, subscriber } = await openOverWebSocket(t, (send, connection) =>
      send(connection === 1 ? bytes : largeMessage(2, 10)),
    )
    for await (const { livestreamId } of subscriber) {
      t.equal(livestreamId, '2', 'nothing of it is told, and the subscriber comes back')
      break
    }
    t.match(problems, [reason])
  })
}

for (const granted of [[], [1, 1], [0xff], [0x80]]) {
  const isDenial = granted[0] === 0x80
  t.test(`a SUBACK with ${JSON.stringify(granted)} grants nothing`, async (t) => {
    const broker = await openScriptedBroker(t, ({ packet, connection, write, proceed }) => {
      if (connection > 1 || packet.cmd !== 'subscribe') return proceed()
      const { messageId = 0 } = packet
      write(Uint8Array.of(0x90, 2 + granted.length, messageId >> 8, messageId & 0xff, ...granted))
    })
    const published = open(t, broker, []).publish(playing(station()))
    if (isDenial) await t.rejects(published, { code: 'feedback.denied' })
    else t.match(await published, { outcome: 'published' }, 'the next connection is right')
    t.equal(broker.published.length, isDenial ? 0 : 1)
  })
}

t.test('packets that only clients send, and answers to nothing, change nothing', async (t) => {
  const broker = await openScriptedBroker(t, ({ packet, send, write, proceed }) => {
    if (packet.cmd !== 'publish') return proceed()
    send({ cmd: 'pingreq' })
    send({ cmd: 'pingresp' })
    send({ cmd: 'puback', messageId: 65_000 })
    send({ cmd: 'pubcomp', messageId: 65_000 })
    send({ cmd: 'suback', messageId: 65_000, granted: [0x80] })
    write(Uint8Array.of(0xb0, 0x02, 0xfd, 0xe8))
    write(Uint8Array.of(0xc0, 0x00))
    proceed()
  })
  const problems: string[] = []
  t.match(await open(t, broker, problems).publish(playing(station())), { outcome: 'published' })
  t.same(problems, [])
})

t.test('a report of a thousand errors is a refusal with all of them, and a short message', async (t) => {
  const errors = Array.from({ length: 1_000 }, (_, nth) => ({
    path: `.services.${nth}.externalId`,
    message: `must be a crid, ${'x'.repeat(500)}`,
    errorCode: 'pattern.openapi.validation',
  }))
  const broker = await openScriptedBroker(t, ({ packet, report, send, proceed }) => {
    if (packet.cmd !== 'publish') return proceed()
    report(packet, { outcome: 'invalid', errors })
    send({ cmd: 'puback', messageId: packet.messageId ?? 0 })
  })
  const refused = await open(t, broker, [])
    .publish(playing(station()))
    .catch((error: unknown) => error)
  if (!(refused instanceof EventRefused)) throw refused
  t.equal(refused.errors.length, 1_000)
  t.ok(refused.message.startsWith('invalid: .services.0.externalId must be a crid'))
  t.ok(refused.message.endsWith('and 995 more'), refused.message.slice(-50))
  t.ok(refused.message.length < 3_000, `${refused.message.length} characters`)
})

function open(t: Test, broker: Broker, problems: string[]) {
  const publisher = connectPublisher({
    ...loginOf(broker),
    institution: own,
    onProblem: ({ message }: ClientError) => problems.push(message),
  })
  t.teardown(() => publisher.close(0))
  return publisher
}

/** A subscriber of a hub that sends these messages after its SUBACK. `connection`: its number, from 1 on. */
async function openOverWebSocket(
  t: Test,
  script: (send: (bytes: Buffer) => void, connection: number) => void,
) {
  const problems: string[] = []
  const subscriber = connectSubscriber({
    ...loginOf(await openWebSocketBroker(t, script)),
    filters: ['radio/#'],
    onProblem: ({ message }) => problems.push(message),
  })
  t.teardown(subscriber.close)
  return { problems, subscriber }
}

type Broker = Awaited<ReturnType<typeof openScriptedBroker>>

const loginOf = ({ url, ca }: Pick<Broker, 'url' | 'ca'>) => ({
  url,
  ca,
  username: 'pub-test',
  password: 'secret',
})
