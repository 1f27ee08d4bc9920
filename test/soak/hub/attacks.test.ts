import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectSocket } from 'node:net'
import { generate } from 'mqtt-packet'
import t from 'tap'
import { connect, connectPublisher } from '../../clients.ts'
import { playing, playingTopic, station } from '../../events.ts'
import { rawClient } from '../../raw-client.ts'
import { type Issued, startTestHub, type TestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'

/* Attacks of a hostile client on a whole node. More are in access.test.ts and sessions.test.ts. */

const livestream = station(0, 0)
const institution = livestream.institution.id
const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
const strangeIds = [
  '__proto__',
  'constructor',
  'toString',
  'a/b',
  '../x',
  '%2F',
  ' ',
  'ä😀',
  '#',
  '+',
  'x'.repeat(256),
]

onEachStore('strange client ids have a session each, over a restart', async (t, store) => {
  const home = await temporaryDirectory(t)
  const hub = await startTestHub(t, store, home)
  const login = await hub.subscriber('radio/#')
  const publisherLogin = await hub.publisher([institution])
  for (const clientId of strangeIds) {
    const app = await connect(t, hub, login, { clientId, clean: false })
    await app.client.subscribeAsync('radio/#', { qos: 1 })
    await app.client.endAsync()
  }
  const publisher = await connectPublisher(t, hub, publisherLogin, institution)
  await publisher.publish(playing(livestream, { title: 'for each' }))
  await hub.close()
  const restarted = await startTestHub(t, store, home)
  for (const clientId of strangeIds) {
    const app = await connect(t, restarted, login, { clientId, clean: false })
    t.equal((await app.received.until(() => true)).json.title, 'for each', clientId.slice(0, 20))
    t.equal(app.received.all.length, 1)
    await app.client.endAsync()
  }
})

t.test('a client id beyond the limit is refused with 2', async (t) => {
  const hub = await startTestHub(t, { HUB_MAX_CLIENT_ID: '30' })
  const login = await hub.subscriber('radio/#')
  for (const [clientId, code] of [
    ['x'.repeat(30), 0],
    ['x'.repeat(31), 2],
    ['ä'.repeat(16), 2],
    ['x'.repeat(60_000), 2],
  ] as const) {
    t.equal((await logIn(t, hub, login, { clientId })).code, code)
  }
  const huge = await raw(t, hub)
  huge.send(generate({ ...base, ...credentials(login), clientId: 'x'.repeat(65_535) }))
  await huge.closed()
  t.same(huge.packets, [], 'the CONNECT is too large to be looked at')
})

t.test('topics and filters that no one should send', async (t) => {
  const hub = await startTestHub(t)
  const publisher = await logIn(t, hub, await hub.publisher([institution]), { clientId: 'studio' })
  const watcher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const deep = `${'a/'.repeat(100)}a`
  for (const topic of [
    deep,
    'x'.repeat(65_535),
    '/'.repeat(65_535),
    `inbox/${institution}/`,
    'inbox/\u200b',
  ]) {
    const seen = watcher.received.all.length
    publisher.client.send({ ...publish, topic })
    const { json } = await watcher.received.until(() => true, seen)
    t.match(
      json,
      { errors: [{ errorCode: /^topic\.(invalid|denied)$/ }] },
      `${topic.slice(0, 30)}, ${topic.length}`,
    )
  }
  const app = await logIn(t, hub, await hub.subscriber('radio/#'))
  const filters = [
    `radio/${deep}`,
    `radio/${'x'.repeat(65_500)}`,
    `radio/${'+/'.repeat(99)}#`,
    'radio/\u200b',
  ]
  const subscriptions = [...filters, 'radio/+/control'].map((topic) => ({ topic, qos: 1 as const }))
  app.client.send({ cmd: 'subscribe', messageId: 1, subscriptions })
  const { granted } = await app.client.next('suback')
  t.equal(granted.at(-1), 1, 'the good one is granted')
  t.equal(granted[0], 128, 'too deep')
  const malformed: [what: string, bytes: string][] = [
    ['a topic that is not UTF-8', '30 05 0003 61ff62'],
    ['a topic with U+0000', '30 05 0003 610062'],
    ['a filter with U+0000', '82 08 0001 0003 610062 00'],
    ['a wildcard in a topic', '30 03 0001 23'],
  ]
  for (const [what, bytes] of malformed) {
    const { client } = await logIn(t, hub, await hub.subscriber('radio/#'), { clientId: what })
    client.send(hex(bytes))
    await client.closed()
    t.equal(client.packets.length, 1, what)
  }
})

t.test('a topic of hundreds of levels is dropped and reported, and the connection stays', async (t) => {
  const hub = await startTestHub(t)
  const watcher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const { client } = await connect(t, hub, await hub.publisher([institution]))
  for (const qos of [1, 2] as const) {
    await client.publishAsync(`inbox${'/x'.repeat(300)}`, '{}', { qos })
    t.match((await watcher.received.until(() => true)).json, {
      outcome: 'invalid',
      errors: [{ errorCode: 'topic.invalid' }],
    })
  }
})

t.test('fewer topic levels, by configuration', async (t) => {
  const hub = await startTestHub(t, { HUB_MAX_TOPIC_LEVELS: '4' })
  const watcher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const { client } = await connect(t, hub, await hub.publisher([institution]))
  await client.publishAsync('a/b/c/d/e', '{}', { qos: 1 })
  t.match((await watcher.received.until(() => true)).json, {
    outcome: 'invalid',
    errors: [{ errorCode: 'topic.invalid' }],
  })
  const app = await logIn(t, hub, await hub.subscriber('radio/#'))
  const subscriptions = ['radio/a/b/c/d', 'radio/+/track/playing'].map((topic) => ({
    topic,
    qos: 1 as const,
  }))
  app.client.send({ cmd: 'subscribe', messageId: 1, subscriptions })
  t.same((await app.client.next('suback')).granted, [128, 1])
})

t.test('QoS 2 messages that are never released are bounded', async (t) => {
  const hub = await startTestHub(t, { HUB_INCOMING_WINDOW: '50', HUB_PUBLISH_RATE: '0' })
  const { client } = await logIn(t, hub, await hub.publisher([institution]), { clean: false })
  const payload = JSON.stringify(playing(livestream))
  for (let messageId = 1; messageId <= 60; messageId++) {
    client.send({ ...publish, topic: `inbox/${institution}`, payload, qos: 2, messageId })
  }
  await client.closed()
  t.ok(client.packets.filter(({ cmd }) => cmd === 'pubrec').length <= 50)
  t.match(
    hub.lines.findLast(({ msg }) => msg === 'connection closed'),
    { reason: 'protocol', detail: '50 QoS 2 messages not released' },
  )
})

t.test('thousands of filters, and thousands of SUBSCRIBE packets', async (t) => {
  const hub = await startTestHub(t, { HUB_MAX_SUBSCRIPTIONS: '100' })
  const watcher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const healthy = await connect(t, hub, await hub.subscriber('radio/#'))
  await healthy.client.subscribeAsync('radio/#', { qos: 1 })
  await watcher.publish(playing(livestream, { title: 'retained' }))
  const login = await hub.subscriber('radio/#')
  const { client } = await logIn(t, hub, login, { clean: false })
  const filters = Array.from({ length: 5000 }, (_, index) => ({ topic: `radio/${index}`, qos: 1 as const }))
  const some = (from: number) => filters.slice(from, from + 100)
  client.send({ cmd: 'subscribe', messageId: 1, subscriptions: some(0).slice(0, 50) })
  t.ok((await client.next('suback')).granted.every((code) => code === 1))
  client.send({ cmd: 'subscribe', messageId: 2, subscriptions: some(50) })
  const { granted } = await client.next('suback', 1)
  t.equal(granted.length, 100)
  t.equal(granted.filter((code) => code === 1).length, 50)
  const greedy = await logIn(t, hub, login, { clientId: 'greedy' })
  greedy.client.send({ cmd: 'subscribe', messageId: 1, subscriptions: filters })
  await greedy.client.closed()
  t.match(
    hub.lines.findLast(({ msg }) => msg === 'connection closed'),
    { reason: 'protocol', detail: 'more than 100 topic filters' },
  )
  const packets = Array.from({ length: 2999 }, (_, index) =>
    generate({ cmd: 'subscribe', messageId: index + 3, subscriptions: [{ topic: 'radio/1', qos: 1 }] }),
  )
  client.send(...packets)
  await watcher.publish(playing(livestream, { title: 'meanwhile' }))
  await healthy.received.until(({ json }) => json.title === 'meanwhile')
  await client.next('suback', 3000)
  const flood = await logIn(t, hub, login)
  flood.client.socket.pause()
  const all = generate({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'radio/#', qos: 1 }] })
  flood.client.send(...Array.from({ length: 5000 }, () => all))
  await watcher.publish(playing(livestream, { title: 'undisturbed' }))
  await healthy.received.until(({ json }) => json.title === 'undisturbed')
})

t.test('connections that never finish their handshake keep nobody out', async (t) => {
  const hub = await startTestHub(t, { HUB_CONNECT_TIMEOUT: '1' })
  const idle = Array.from({ length: 200 }, () => connectSocket(hub.mqttPort, '127.0.0.1'))
  t.teardown(() => {
    for (const socket of idle) socket.destroy()
  })
  await Promise.all(idle.map((socket) => once(socket, 'connect')))
  for (const socket of idle.slice(0, 100)) socket.write(hex('16 03 01 02 00 01'))
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const silent = await raw(t, hub)
  await silent.closed()
  t.ok(app.client.connected, 'one that shook hands and says nothing is closed after the configured time')
})

t.test('what an unauthenticated client announces is not waited for', async (t) => {
  const hub = await startTestHub(t)
  const before = process.memoryUsage()
  const attackers = await Promise.all(Array.from({ length: 8 }, () => raw(t, hub)))
  const chunk = Buffer.alloc(1024 * 1024)
  for (const client of attackers) {
    client.send(hex('10 80 80 80 64'))
    for (let mebibyte = 0; mebibyte < 20 && !client.isClosed; mebibyte++) client.socket.write(chunk)
  }
  await Promise.all(attackers.map((client) => client.closed()))
  const after = process.memoryUsage()
  t.ok(after.heapUsed - before.heapUsed < 32 * 1024 * 1024)
  t.ok(
    hub.lines.filter(({ detail }) => /^packet of 2\d+ bytes, at most 65536 allowed$/.test(`${detail}`))
      .length === 8,
  )
})

onEachStore('a guessed session is not resumed, kicked or read', async (t, store) => {
  const hub = await startTestHub(t, store)
  const owner = await connect(t, hub, await hub.subscriber('radio/#'), { clientId: 'car-1', clean: false })
  await owner.client.subscribeAsync('radio/#', { qos: 1 })
  const thief = await hub.subscriber('radio/+/control')
  const publisher = await hub.publisher([institution])
  for (const login of [thief, publisher, { username: owner.client.options.username ?? '', password: 'x' }]) {
    for (const clean of [true, false]) {
      const { client, code } = await logIn(t, hub, login, { clientId: 'car-1', clean })
      t.ok(code === 2 || code === 4)
      await client.closed()
    }
  }
  t.ok(owner.client.connected)
  const watcher = await connectPublisher(t, hub, publisher, institution)
  await watcher.publish(playing(livestream, { title: 'still mine' }))
  t.equal((await owner.received.until(() => true)).topic, playingTopic(livestream))
})

const base = { cmd: 'connect', protocolId: 'MQTT', protocolVersion: 4, clean: true, keepalive: 0 } as const
const publish = {
  cmd: 'publish',
  topic: '',
  payload: '{}',
  qos: 1,
  messageId: 1,
  retain: false,
  dup: false,
} as const

type Tap = Parameters<typeof startTestHub>[0]

function raw(t: Tap, hub: TestHub) {
  return rawClient(t, hub.mqttPort, readFileSync(hub.caPath))
}

async function logIn(t: Tap, hub: TestHub, login: Issued, fields: Record<string, unknown> = {}) {
  const client = await raw(t, hub)
  const connack = await client.connect({ ...credentials(login), ...fields })
  return { client, code: connack.returnCode }
}

function credentials({ username, password }: Issued) {
  return { username, password: Buffer.from(password) }
}
