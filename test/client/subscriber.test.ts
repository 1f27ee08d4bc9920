import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:tls'
import { generate, parser } from 'mqtt-packet'
import t, { type Test } from 'tap'
import {
  type AnyMessage,
  type ClientError,
  connectSubscriber,
  type Subscriber,
  type SubscriberOptions,
} from '../../client/node.ts'
import { shareCertificates } from '../certificates.ts'
import { connectPublisher } from '../clients.ts'
import { control, data, institutions, playing, station } from '../events.ts'
import { listen } from '../listen.ts'
import { startTestHub, type TestHub, temporaryDirectory } from '../start-hub.ts'
import { thrownApart } from './thrown-apart.ts'

const [own = ''] = institutions
const { id } = station()

t.jobs = 3

/** The node of the first test, and of those that publish nothing. */
const shared = startTestHub(t, { HUB_PUBLIC_PAGE: 'false' })

t.test('events come typed, with the retained ones first, by iteration and by listener', async (t) => {
  const hub = await shared
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  await publisher.publish(playing(station(), { title: 'Before' }))
  const { subscriber } = await open(t, hub)
  const heard: string[] = []
  for (const kind of ['playing', 'next', 'control', 'data'] as const) {
    subscriber.on(kind, ({ event }) => heard.push(`${kind} ${event.id}`))
  }
  const iterator = subscriber[Symbol.asyncIterator]()
  const before = await take(iterator)
  t.match(before, { kind: 'playing', livestreamId: id, retained: true, event: { title: 'Before' } })

  const ids = [before.event.id]
  for (const event of [
    playing(station(), { event: 'de.org.hub.v1.radio.track.next', title: 'Coming' }),
    control(station()),
    data(station()),
    playing(station(), { title: 'Now' }),
  ]) {
    await publisher.publish(event)
    const message = await take(iterator)
    t.match(message, { retained: false, dropped: 0, event: { event: event.event } })
    ids.push(message.event.id)
  }
  const kinds = ['playing', 'next', 'control', 'data', 'playing']
  t.strictSame(
    heard,
    kinds.map((kind, index) => `${kind} ${ids[index]}`),
  )
  t.equal(subscriber.state, 'live')
  await subscriber.close()
  t.strictSame(await iterator.next(), { done: true, value: undefined })
})

t.test('what a livestream shows goes by event time, and a control state ends by its time', async (t) => {
  const hub = await startTestHub(t)
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const { subscriber } = await open(t, hub)
  const changes: string[] = []
  const changed = new Promise<void>((resolve) => {
    subscriber.on('changed', ({ livestreamId, nowPlaying: { playing: now, controls } }) => {
      changes.push(`${now?.title ?? '-'} ${controls.map(({ name }) => name)}`)
      if (livestreamId === id && changes.at(-1) === 'Now ' && changes.length > 1) resolve()
    })
  })
  await live(subscriber)
  const at = (ms: number) => new Date(Date.now() + ms).toISOString()
  await publisher.publish(playing(station(), { title: 'Now' }))
  await publisher.publish(playing(station(), { title: 'Late', start: at(-60_000) }))
  await publisher.publish(control(station(), { name: 'traffic', validUntil: at(2_000) }))
  await changed
  t.strictSame(changes, ['Now ', 'Now traffic', 'Now '])
  t.equal(subscriber.nowPlaying.size, 1)
  t.match([...subscriber.nowPlaying], [[id, { playing: { title: 'Now' }, controls: [] }]])
  t.match(subscriber.nowPlaying.get(id), { playing: { title: 'Now' } })
  t.equal(subscriber.nowPlaying.get('urn:org:livestream:other'), undefined)
})

t.test('a denied filter is named, and the granted one stays, also after the node was away', async (t) => {
  const hub = await startTestHub(t)
  const { subscriber, problems } = await open(t, hub, {
    ...(await hub.subscriber('radio/+/track/playing')),
    filters: ['radio/#', 'radio/+/track/playing'],
  })
  await live(subscriber)
  t.match(problems, [{ code: 'filter.denied', message: /^radio\/#: / }])
  const ports = { HUB_HTTPS_PORT: `${hub.httpsPort}`, HUB_MQTT_PORT: `${hub.mqttPort}` }
  await hub.close()
  const again = await startTestHub(t, ports, hub.home)
  await live(subscriber)
  const publisher = await connectPublisher(t, again, await again.publisher([own]), own)
  const iterator = subscriber[Symbol.asyncIterator]()
  await publisher.publish(playing(station(), { title: 'After' }))
  t.match(await take(iterator), { event: { title: 'After' } })
  t.equal(problems.filter(({ code }) => code === 'filter.denied').length, 1, 'and is not named each time')
  t.ok(problems.some(({ code }) => code === 'connection.lost'))
})

t.test('if no filter is granted, the iteration rejects', async (t) => {
  const hub = await shared
  const { subscriber, problems } = await open(t, hub, {
    ...(await hub.subscriber('radio/+/track/playing')),
    filters: ['radio/#'],
  })
  await t.rejects(subscriber[Symbol.asyncIterator]().next(), { code: 'filter.denied' })
  t.match(problems, [{ message: /^radio\/#: / }, { message: /none of the filters/ }])
  t.equal(subscriber.state, 'refused')
})

t.test('a wrong password is the end, and so is a credential that was revoked', async (t) => {
  const hub = await shared
  const wrong = await open(t, hub, { ...(await hub.subscriber('radio/#')), password: 'wrong' })
  await t.rejects(wrong.subscriber[Symbol.asyncIterator]().next(), {
    name: 'ClientError',
    code: 'login.refused',
    message: /CONNACK 5|CONNACK 4/,
  })
  const login = await hub.subscriber('radio/#')
  const { subscriber } = await open(t, hub, login)
  await live(subscriber)
  await hub.ask('credentials.revoke', { username: login.username })
  await t.rejects(subscriber[Symbol.asyncIterator]().next(), { code: 'login.refused' })
  await t.rejects(subscriber[Symbol.asyncIterator]().next(), { code: 'login.refused' }, 'also later')
})

t.test('CONNACK 3 is tried again, each time after a longer pause', async (t) => {
  const home = await temporaryDirectory(t)
  await shareCertificates(home)
  const [key, cert] = ['server-key.pem', 'server.pem'].map((name) => readFileSync(`${home}/${name}`))
  const at: number[] = []
  const server = createServer({ key, cert }, (socket) => {
    const parse = parser()
    socket.on('error', () => {})
    socket.on('data', (bytes) => parse.parse(bytes))
    parse.on('packet', () => {
      at.push(performance.now())
      server.emit('asked')
      socket.end(generate({ cmd: 'connack', returnCode: 3, sessionPresent: false }))
    })
  })
  const port = await listen(t, server)
  const problems: ClientError[] = []
  const subscriber = connectSubscriber({
    url: `mqtts://localhost:${port}`,
    ca: `${home}/ca.pem`,
    username: 'u',
    password: 'p',
    filters: ['radio/#'],
    onProblem: (problem) => problems.push(problem),
  })
  t.teardown(subscriber.close)
  while (at.length < 4) await once(server, 'asked')
  const [first = 0, second = 0, third = 0, fourth = 0] = at
  t.ok(second - first >= 250, 'half a second, at random down to the half of it')
  t.ok(fourth - third > second - first, 'then up to two seconds')
  t.match(problems[0], { code: 'connection.lost', message: /Server unavailable/ })
  await subscriber.close()
  t.equal(subscriber.state, 'lost')
})

t.test('without a user name it reads with the credential that a public page gives everybody', async (t) => {
  const hub = await startTestHub(t, { HUB_PUBLIC_PAGE: 'true' })
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const problems: ClientError[] = []
  const subscriber = connectSubscriber({
    url: `https://localhost:${hub.httpsPort}`,
    ca: readFileSync(hub.caPath, 'utf8'),
    filters: [`radio/${id}/#`],
    onProblem: (problem) => problems.push(problem),
  })
  t.teardown(subscriber.close)
  await live(subscriber)
  const [{ username = '' } = {}] = await hub
    .ask<{ username?: string }[]>('clients.list')
    .then((clients) => clients.filter((client) => client.username?.startsWith('sub-page-')))
  // Revoked, as the hub does after an hour: it takes the next one.
  await hub.ask('credentials.revoke', { username })
  const iterator = subscriber[Symbol.asyncIterator]()
  await hub.until(async () => subscriber.state === 'live' && problems.length > 0)
  await publisher.publish(playing(station(), { title: 'For everybody' }))
  t.match(await take(iterator), { event: { title: 'For everybody' } })
})

t.test('a node without a public page says that it needs a log-in', async (t) => {
  const hub = await shared
  const subscriber = connectSubscriber({
    url: `wss://localhost:${hub.httpsPort}/mqtt`,
    ca: hub.caPath,
    filters: ['radio/#'],
    onProblem: () => {},
  })
  await t.rejects(subscriber[Symbol.asyncIterator]().next(), {
    code: 'login.refused',
    message: /gives strangers no credential \(HTTP 401\)/,
  })
})

t.test('a listener that fails is seen, and stops nobody else', async (t) => {
  const hub = await startTestHub(t)
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const { subscriber } = await open(t, hub)
  subscriber.on('playing', () => {
    throw new Error('of the listener')
  })
  const iterator = subscriber[Symbol.asyncIterator]()
  await live(subscriber)
  const thrown = thrownApart(t)
  await publisher.publish(playing(station(), { title: 'Now' }))
  t.match(await take(iterator), { event: { title: 'Now' } })
  t.match(thrown, [{ message: 'of the listener' }])
})

t.test('a wrong option is named at once', async (t) => {
  const right = { url: 'mqtts://localhost:1', username: 'u', password: 'p', filters: ['radio/#'] }
  for (const [name, option] of Object.entries({
    url: [{ url: 'mqtt://localhost' }, { url: 'hub' }, { url: 'mqtts://user@localhost' }],
    username: [{ username: undefined }, { username: 'x'.repeat(65_536) }],
    password: [{ password: undefined }, { password: 'ü'.repeat(32_768) }],
    ca: [{ ca: '/nowhere/ca.pem' }],
    filters: [{ filters: [] }, { filters: [''] }, { filters: ['radio/#/data'] }, { filters: ['radio+'] }],
  })) {
    for (const one of option) {
      const connect = () => connectSubscriber({ ...right, ...one })
      t.throws(
        connect,
        { code: 'option.invalid', message: new RegExp(`^${name} `) },
        JSON.stringify(one).slice(0, 50),
      )
    }
  }
})

async function open(t: Test, hub: TestHub, options: Partial<SubscriberOptions> = {}) {
  const problems: ClientError[] = []
  const login = options.username === undefined ? await hub.subscriber('radio/#') : {}
  const subscriber = connectSubscriber({
    url: `mqtts://localhost:${hub.mqttPort}`,
    ca: hub.caPath,
    filters: ['radio/#'],
    onProblem: (problem) => problems.push(problem),
    ...login,
    ...options,
  })
  t.teardown(subscriber.close)
  return { subscriber, problems }
}

/** Resolves at the next time that the subscriptions are made. */
function live(subscriber: Subscriber): Promise<void> {
  return new Promise((resolve) => {
    const off = subscriber.on('state', (state) => {
      if (state !== 'live') return
      off()
      resolve()
    })
  })
}

async function take(iterator: AsyncIterator<AnyMessage & { dropped: number }, undefined>) {
  const { done, value } = await iterator.next()
  if (done) throw new Error('there is no more')
  return value
}
