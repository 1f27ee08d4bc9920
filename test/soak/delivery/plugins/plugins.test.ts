import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLocalJWKSet, jwtVerify } from 'jose'
import t, { type Test } from 'tap'
import { addUser, openApi } from '../../../bridge-https/api.ts'
import { connectPublisher } from '../../../clients.ts'
import { institutions, playing, station } from '../../../events.ts'
import { pushing, startReceiver } from '../../../receiver.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'

const [own = ''] = institutions

/** `dts` gets events automatically, the other targets only events that name them. */
async function start(t: Test, isPublic = false) {
  const home = await temporaryDirectory(t)
  const target = await startReceiver(t, home)
  const plugins = [
    { type: 'dts', autoEnable: true, url: target.url('/dts') },
    { type: 'manual', url: target.url('/manual') },
    // With `isPublic`, the hub believes that this is the URL of its own POST /pubsub.
    { type: 'hub', url: target.url('/pubsub') },
    { type: 'elsewhere', url: target.url('/elsewhere') },
  ]
  const config = join(home, 'hub.json')
  await writeFile(config, JSON.stringify({ plugins }))
  // With `isPublic`, the public URL of the hub is that of the receiver. So the receiver gets the items that the hub
  // sends to itself.
  const publicUrl = isPublic ? { HUB_PUBLIC_URL: target.url('') } : {}
  const hub = await startTestHub(t, { ...pushing(target), ...publicUrl, HUB_CONFIG: config }, home)
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  return { home, target, hub, publisher }
}

t.test('an event reaches its targets as items, signed like a push', async (t) => {
  const { target, hub, publisher } = await start(t)
  const api = await openApi(t, hub)
  const entry = { type: 'manual', id: '7', station: 'kw1' }
  const report = await publisher.publish(playing(station(), { title: 'One', plugins: [entry] }))
  await target.until((received) => received.length === 2)
  for (const [path, plugin] of [
    ['/dts', { type: 'dts' }],
    ['/manual', entry],
  ] as const) {
    const item = target.received.find((received) => received.path === path)
    if (!item) throw new Error(`nothing at ${path}`)
    const { action, event, institutionId, ...rest } = item.body as unknown as Record<string, unknown>
    t.equal(action, `plugins.${plugin.type}.event`)
    t.match(event, { title: 'One', id: report.id, plugins: [entry] })
    t.same(rest, { plugin })
    t.equal(institutionId, own)
    t.equal(item.headers['hub-message-id'], report.id)

    const bearer = String(item.headers.authorization).replace(/^Bearer /, '')
    const { json: discovery } = await api.call('GET', '/.well-known/openid-configuration')
    const { json: jwks } = await api.call('GET', '/.well-known/jwks.json')
    const { payload, protectedHeader } = await jwtVerify(bearer, createLocalJWKSet(jwks as never), {
      issuer: String(discovery.issuer),
      audience: target.url(path),
    })
    t.equal(protectedHeader.alg, 'RS256')
    t.match(payload, { email: payload.sub, email_verified: true })
  }
})

t.test('one item per event and target, however often the publisher repeats', async (t) => {
  const { target, publisher } = await start(t)
  const event = playing(station(), { title: 'Same', plugins: [{ type: 'dts' }, { type: 'dts' }] })
  const first = publisher.client.publishAsync(`inbox/${own}`, JSON.stringify(event), { qos: 1 })
  const second = publisher.client.publishAsync(`inbox/${own}`, JSON.stringify(event), { qos: 1 })
  await Promise.all([first, second])
  await publisher.publish(event)
  await publisher.publish({ ...event, title: 'Other' })
  await target.until((received) => received.some(({ event: item }) => Object(item.event).title === 'Other'))
  t.same(
    target.received.map(({ event: item }) => Object(item.event).title),
    ['Same', 'Other'],
  )
})

t.test('unknown types are a warning in the feedback, and the rest goes on', async (t) => {
  const { target, publisher } = await start(t)
  const plugins = [{ type: 'nowhere' }, { type: 'manual' }, { type: 'dts', isDeactivated: true }]
  const report = await publisher.publish(playing(station(), { plugins }))
  t.match(report, {
    outcome: 'published',
    errors: [],
    warnings: [{ path: '.plugins.0.type', errorCode: 'plugin.unknown' }],
  })
  await target.until((received) => received.length === 1)
  t.equal(target.received[0]?.path, '/manual')
  const fine = await publisher.publish(playing(station(), { plugins: [{ type: 'manual' }] }))
  t.notOk('warnings' in fine)
})

t.test('what a target does not take is tried again, with the same message id', async (t) => {
  const { target, hub, publisher } = await start(t)
  const answers = [500, 503, 201]
  target.behave(() => answers.shift())
  await publisher.publish(playing(station(), { title: 'One' }))
  await target.until((received) => received.length === 3)
  t.equal(new Set(target.received.map(({ headers }) => headers['hub-message-id'])).size, 1)
  const attempts = await hub.ask<{ status: number }[]>('queues.attempts', { name: 'plugins.dts' })
  t.match(attempts.map(({ status }) => status).slice(-2), [503, 500])
  const [queue] = await hub.ask<{ name: string }[]>('queues.list')
  t.match(queue, { name: 'plugins.dts', target: target.url('/dts'), deadLetters: 0 })
})

t.test('the same body as next and as playing is two events', async (t) => {
  const { target, hub } = await start(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const { event: _, ...body } = playing(station(), { title: 'Soon', plugins: [{ type: 'manual' }] })
  const publish = async (kind: string) =>
    t.equal(
      (await api.call('POST', `/events/de.org.hub.v1.radio.track.${kind}`, { token, body })).status,
      201,
    )
  await publish('playing') // this first event only makes the topic, and goes to nobody
  await publish('next')
  await publish('playing')
  await target.until((received) => received.filter(({ path }) => path === '/manual').length === 2)
  t.same(
    target.received
      .filter(({ path }) => path === '/manual')
      .map(({ event: item }) => String(Object(item.event).event).split('.').at(-1)),
    ['next', 'playing'],
  )
})

t.test('POST /pubsub takes items that the hub has signed for it, once', async (t) => {
  const { target, hub } = await start(t, true)
  const api = await openApi(t, hub)
  const { token: user } = await addUser(hub, api, own)
  const plugins = [{ type: 'dts', isDeactivated: true }, { type: 'hub' }, { type: 'elsewhere' }]
  const event = playing(station(), { plugins })
  const publish = () => api.call('POST', `/events/${event.event}`, { token: user, body: event })
  await publish() // this first event only makes the topic, and goes to nobody
  await publish()
  await target.until((received) => received.length === 2)
  const signedFor = (path: string) =>
    String(target.received.find((one) => one.path === path)?.headers.authorization).replace('Bearer ', '')
  const item = {
    action: 'plugins.manual.event',
    event: { title: 'Pushed' },
    plugin: { type: 'manual', id: '7' },
    institutionId: own,
  }
  const send = async (token: string | undefined, work: object, messageId = '17') => {
    const data = Buffer.from(JSON.stringify(work)).toString('base64')
    const body = { message: { data, messageId }, subscription: 'plugins' }
    return (await api.call('POST', '/pubsub', { token, body })).status
  }
  t.equal(await send(undefined, item), 401)
  t.equal(await send(user, item), 403, 'a user is not the hub')
  t.equal(await send(signedFor('/elsewhere'), item), 403, 'a receiver of pushes is not the hub')
  const token = signedFor('/pubsub')
  t.equal(await send(token, { ...item, action: 'plugins.nowhere.event' }), 404)
  t.equal(await send(token, { ...item, event: 'x' }), 400)
  t.equal(await send(token, item), 201)
  t.equal(await send(token, item), 201, 'a repetition')
  t.equal(await send(token, { ...item, event: { title: 'Second' } }, '18'), 201)
  await target.until((received) => received.filter(({ path }) => path === '/manual').length === 2)
  const items = target.received.filter(({ path }) => path === '/manual')
  t.same(items[0]?.body, item)
  t.same(
    items.map(({ headers }) => headers['hub-message-id']),
    ['17', '18'],
  )
})
