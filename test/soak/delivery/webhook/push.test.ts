import { join } from 'node:path'
import { createLocalJWKSet, jwtVerify } from 'jose'
import t, { type Test } from 'tap'
import { addUser, openApi } from '../../../bridge-https/api.ts'
import { connect } from '../../../clients.ts'
import { control, data, institutions, playing, station } from '../../../events.ts'
import { type Behaviour, pushing, startReceiver } from '../../../receiver.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'
import { onEachStore, openStoreOf, type StoreSettings } from '../../../stores.ts'

// The tests mostly wait, so two run at the same time.
t.jobs = 2

const [own = '', foreign = ''] = institutions
const playingUrl = '/events/de.org.hub.v1.radio.track.playing'

async function start(t: Test, store: StoreSettings = {}) {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const hub = await startTestHub(t, { ...store, ...pushing(receiver) }, home)
  const api = await openApi(t, hub)
  const user = await addUser(hub, api, own)
  const { token } = user
  const publish = (title: string, fields: object = {}) =>
    api.call('POST', playingUrl, { token, body: { ...playing(station()), title, ...fields } })
  await publish('makes the topic')

  async function subscribe(path = '/hook', topic = station().id): Promise<Record<string, string>> {
    const body = { type: 'PUBSUB', method: 'PUSH', url: receiver.url(path), contact: 'a@b.example', topic }
    const { status, json } = await api.call('POST', '/subscriptions', { token, body })
    t.equal(status, 201)
    return json as Record<string, string>
  }
  return { home, receiver, hub, api, token, publish, subscribe }
}

const titles = (received: readonly { event: Record<string, unknown> }[]) =>
  received.map(({ event }) => event.title)

t.test('an event arrives at the webhook, in the wire format, signed', async (t) => {
  const { receiver, hub, api, publish, subscribe } = await start(t)
  const subscription = await subscribe()
  const { json } = await publish('One')
  await receiver.until((received) => received.length === 1)
  const [pushed] = receiver.received
  if (!pushed) throw new Error('nothing arrived')
  t.equal(pushed.headers['content-type'], 'application/json')
  t.match(pushed.body, {
    message: {
      attributes: {
        event: 'de.org.hub.v1.radio.track.playing',
        livestreamId: station().id,
        institutionId: own,
      },
      messageId: Object(json.event).id,
      publishTime: /^\d{4}-.*Z$/,
    },
    subscription: subscription.name,
  })
  t.match(pushed.event, { title: 'One', id: Object(json.event).id })

  // Verify the token as any receiver does, starting from the discovery document.
  const bearer = String(pushed.headers.authorization).replace(/^Bearer /, '')
  const { json: discovery } = await api.call('GET', '/.well-known/openid-configuration')
  const { json: jwks } = await api.call('GET', '/.well-known/jwks.json')
  t.equal(discovery.jwks_uri, `https://localhost:${hub.httpsPort}/.well-known/jwks.json`)
  const { payload, protectedHeader } = await jwtVerify(bearer, createLocalJWKSet(jwks as never), {
    issuer: String(discovery.issuer),
    audience: receiver.url(),
  })
  t.equal(protectedHeader.alg, 'RS256')
  t.match(payload, {
    email: subscription.serviceAccount,
    email_verified: true,
    sub: subscription.serviceAccount,
  })
})

t.test('events arrive in order, each once, over kept connections', async (t) => {
  const { receiver, publish, subscribe } = await start(t)
  await subscribe()
  for (let number = 1; number <= 20; number++) await publish(`Event ${number}`)
  await receiver.until((received) => received.length === 20)
  t.same(
    titles(receiver.received),
    Array.from({ length: 20 }, (_, index) => `Event ${index + 1}`),
  )
  t.equal(new Set(receiver.received.map(({ clientPort }) => clientPort)).size, 1)
})

onEachStore('a publisher that repeats itself causes one push', async (t, store) => {
  const { receiver, publish, subscribe } = await start(t, store)
  await subscribe()
  const moment = new Date().toISOString()
  const [first, second] = await Promise.all([
    publish('Same', { start: moment }),
    publish('Same', { start: moment }),
  ])
  t.match([first.json, second.json], [{ statuses: { published: 1 } }, { statuses: { published: 1 } }])
  await publish('Same', { start: moment })
  await publish('Other', { start: moment })
  await receiver.until((received) => received.length === 2)
  t.same(titles(receiver.received), ['Same', 'Other'])
})

t.test('the same bytes under another event name are another event', async (t) => {
  const { receiver, api, token, subscribe } = await start(t)
  await subscribe()
  const { event: _inThePath, ...body } = playing(station(), { title: 'Both' })
  for (const name of ['next', 'playing', 'next']) {
    await api.call('POST', `/events/de.org.hub.v1.radio.track.${name}`, { token, body })
  }
  await api.call('POST', playingUrl, { token, body: { ...body, title: 'Last' } })
  await receiver.until((received) => received.some(({ event }) => event.title === 'Last'))
  t.same(
    receiver.received.map(({ body, event }) => [body.message.attributes.event, event.title]),
    [
      ['de.org.hub.v1.radio.track.next', 'Both'],
      ['de.org.hub.v1.radio.track.playing', 'Both'],
      ['de.org.hub.v1.radio.track.playing', 'Last'],
    ],
  )
})

t.test('what acknowledges, and what does not (design.md §10)', async (t) => {
  const { receiver, hub, publish, subscribe } = await start(t)
  const { name = '' } = await subscribe()
  const answers: Behaviour[] = [
    (_pushed, response) => void response.destroy(),
    () => 500,
    () => 301,
    () => 200,
    () => 202,
    () => 204,
    (_pushed, response) => void response.writeProcessing(),
    () => 201,
  ]
  receiver.behave((...how) => answers.shift()?.(...how) ?? undefined)
  await publish('One')
  for (const title of ['Two', 'Three', 'Four', 'Five']) await publish(title)
  await receiver.until((received) => received.length === 8)
  t.same(titles(receiver.received), ['One', 'One', 'One', 'One', 'Two', 'Three', 'Four', 'Five'])
  const gaps = receiver.received.slice(1, 4).map(({ at }, index) => at - (receiver.received[index]?.at ?? 0))
  t.ok(
    gaps.every((ms, index) => ms >= 990 * 2 ** index),
    `growing pauses: ${gaps.map(Math.round)}`,
  )
  const planned = hub.lines
    .filter(({ msg }) => msg === 'delivery failed')
    .map(({ retryInMs }) => Number(retryInMs))
  t.ok(
    planned.every((ms, index) => ms >= 1_000 * 2 ** index && ms <= 1_250 * 2 ** index),
    `planned pauses: ${planned}`,
  )
  t.equal(planned.length, 3)
  const attempts = await hub.ask<{ status: number | null; reason: string | null }[]>('queues.attempts', {
    name,
  })
  t.match(attempts.map(({ status }) => status).slice(-4), [200, 301, 500, null])
})

t.test('Retry-After is honoured', async (t) => {
  const { receiver, publish, subscribe } = await start(t)
  await subscribe()
  let refused = 0
  receiver.behave((_pushed, response) => {
    if (refused++ > 0) return 201
    response.writeHead(503, { 'retry-after': '3' }).end()
    return undefined
  })
  await publish('One')
  await receiver.until((received) => received.length === 2)
  const [first, second] = receiver.received
  t.ok((second?.at ?? 0) - (first?.at ?? 0) >= 2_950)
})

t.test('an acknowledged test message is marked, and only the institution sees and sends one', async (t) => {
  const { receiver, hub, api, token, publish, subscribe } = await start(t)
  const { name = '' } = await subscribe()
  receiver.behave(() => 410)
  const test = () => api.call('POST', `/subscriptions/${name}/test`, { token })
  t.match((await test()).json, { delivered: false, delivery: { status: 410 } })
  receiver.behave(() => 204)
  t.match((await test()).json, { delivered: true, delivery: { status: 204, reason: null }, trace: null })
  t.match(receiver.received.at(-1), {
    event: { event: 'de.org.hub.v1.test', test: true },
    body: { message: { attributes: { test: 'true' } } },
  })
  await publish('One')
  await receiver.until((received) => received.at(-1)?.event.title === 'One')

  const deliveries = () => api.call('GET', `/subscriptions/${name}/deliveries`, { token })
  await hub.until(async () => Object(await deliveries()).json.length === 3)
  t.match((await deliveries()).json, [{ status: 204 }, { status: 204 }, { status: 410 }])
  const stranger = await addUser(hub, api, foreign)
  for (const [method, path] of [
    ['GET', 'deliveries'],
    ['POST', 'test'],
  ] as const) {
    const refused = await api.call(method, `/subscriptions/${name}/${path}`, { token: stranger.token })
    t.equal(refused.status, 404, `${path} is not for others`)
  }
})

t.test('a message that a healthy endpoint keeps refusing steps aside', { timeout: 120_000 }, async (t) => {
  const { receiver, hub, publish, subscribe } = await start(t)
  const { name = '' } = await subscribe()
  receiver.behave(({ event }) => (event.title === 'Poison' ? 422 : 201))
  await publish('Poison')
  await publish('Fine')
  await publish('Fine too')
  await receiver.until((received) => received.some(({ event }) => event.title === 'Fine too'))
  t.same(titles(receiver.received), [...Array.from({ length: 5 }, () => 'Poison'), 'Fine', 'Fine too'])
  const queue = async () =>
    (await hub.ask<{ name: string; pending: number; aside: number }[]>('queues.list'))[0]
  await hub.until(async () => (await queue())?.pending === 1)
  t.match(await queue(), { name, pending: 1, aside: 1 })
  receiver.behave(() => 201)
  await receiver.until((received) => received.at(-1)?.event.title === 'Poison')
})

onEachStore('a removed subscription gets nothing more, and leaves nothing behind', async (t, store) => {
  const { receiver, hub, api, token, publish, subscribe } = await start(t, store)
  const { name = '' } = await subscribe('/removed')
  const kept = await subscribe('/kept')
  receiver.behave(({ path }) => (path === '/removed' ? 500 : 201))
  await publish('One')
  const toRemoved = () => receiver.received.filter(({ path }) => path === '/removed').length
  await receiver.until((received) => new Set(received.map(({ path }) => path)).size === 2)
  t.equal((await api.call('DELETE', `/subscriptions/${name}`, { token })).status, 200)
  const before = toRemoved()
  await publish('Two')
  await receiver.until((received) => received.some(({ event }) => event.title === 'Two'))
  t.match(await hub.ask('queues.list'), [{ name: kept.name }])
  t.equal(toRemoved(), before)
})

t.test('events over MQTT are pushed too, control and data are not', async (t) => {
  const { receiver, hub, subscribe } = await start(t)
  await subscribe()
  const publisher = await hub.publisher([own])
  const { client } = await connect(t, hub, publisher)
  const at = station()
  for (const event of [control(at), data(at), { ...playing(at), title: 'Over MQTT' }]) {
    await client.publishAsync(`inbox/${own}`, JSON.stringify(event), { qos: 1 })
  }
  await receiver.until((received) => received.length === 1)
  t.same(titles(receiver.received), ['Over MQTT'])
})

onEachStore('a test message under way when its subscription is removed leaves nothing', async (t, store) => {
  const { receiver, hub, api, token, subscribe } = await start(t, store)
  const { name = '' } = await subscribe()
  let proceed = () => {}
  const arrived = new Promise<void>((resolve) => {
    receiver.behave((_pushed, response) => {
      proceed = () => void response.writeHead(201).end()
      resolve()
      return undefined
    })
  })
  const test = api.call('POST', `/subscriptions/${name}/test`, { token })
  await arrived
  t.equal((await api.call('POST', `/subscriptions/${name}/test`, { token })).status, 429)
  t.equal((await api.call('DELETE', `/subscriptions/${name}`, { token })).status, 200)
  proceed()
  t.match(await test, { status: 200, json: { delivered: true } })
  await hub.close()
  const opened = await openStoreOf(store, join(hub.home, 'data'))
  t.teardown(opened.close)
  for (const prefix of ['attempt/', 'subscription/', 'work/', 'push-standing/']) {
    for await (const [key] of opened.range(prefix)) t.fail(`left: ${key}`)
  }
})
