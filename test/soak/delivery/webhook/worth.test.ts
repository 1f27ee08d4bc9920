import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { addUser, openApi } from '../../../bridge-https/api.ts'
import { connect } from '../../../clients.ts'
import { control, institutions, playing, station } from '../../../events.ts'
import { clockOf } from '../../../moving-clock.ts'
import { pushing, startReceiver, webhookBody } from '../../../receiver.ts'
import { spawnHub } from '../../../spawn-hub.ts'
import { askNode, type Issued, startTestHub, temporaryDirectory } from '../../../start-hub.ts'
import { onEachStore } from '../../../stores.ts'
import { comes } from '../../../until.ts'

/*
 * A webhook says for how long an event is worth delivering (deliveries.md, "Worth").
 */

const [own = ''] = institutions
const element = { maxAge: 'element' }

interface ShownSubscription {
  stale: number
  pending: number
  maxAge: unknown
  attempts: { reason: string | null; stale?: { livestreamId: string; count: number } }[]
}

onEachStore('after an outage comes what plays now, and nothing that is over', async (t, store) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const env = { ...store, ...pushing(receiver), HUB_PUBLIC_URL: 'https://hub.example' }
  let hub = await startTestHub(t, env, home)
  let api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const livestream = station()
  const body = webhookBody(receiver.url(), livestream.id)
  const login = await hub.ask<Issued>('credentials.add', {
    role: 'publisher',
    label: 'studio',
    institutions: [own],
  })
  const begin = Date.now() - 3_600_000
  const publish = async (...titles: string[]) => {
    const { client } = await connect(t, hub, login)
    for (const title of titles) {
      const start = new Date(begin + 1000 * Number(/\d+/.exec(title))).toISOString()
      const event = playing(livestream, { title, start, playlistItemId: title, length: 1 })
      await client.publishAsync(`inbox/${own}`, JSON.stringify(event), { qos: 1 })
    }
    await client.endAsync()
  }
  const titles = () => receiver.received.map(({ event }) => event.title)
  const shown = (name: string) => hub.ask<ShownSubscription>('subscriptions.show', { name })

  await publish('0')
  const judged = (await api.call('POST', '/subscriptions', { token, body: { ...body, ...element } })).json
  t.match(judged, element)
  const name = String(judged.name)
  t.match((await api.call('GET', `/subscriptions/${name}`, { token })).json, element)
  await hub.ask('subscriptions.pause', { name })
  await publish('1', '2', '3')
  await hub.close()
  hub = await startTestHub(t, env, home)
  api = await openApi(t, hub)
  await publish('5', '4')
  await hub.ask('subscriptions.resume', { name })
  await hub.until(async () => (await shown(name)).pending === 0)
  t.same(titles(), ['5'], 'what plays now, and neither the older ones nor the one that came late')
  const before = await shown(name)
  t.match(before, { stale: 4, maxAge: 'element' })
  t.match(
    before.attempts.filter(({ stale }) => stale),
    [{ stale: { livestreamId: livestream.id, count: 4 } }],
    'one line',
  )
  t.match(await hub.ask('queues.list'), [{ name, stale: 4 }])
  const log: unknown = (await api.call('GET', `/subscriptions/${name}/deliveries`, { token })).json
  t.match(
    (log as { stale?: object }[]).filter(({ stale }) => stale),
    [{ status: null, stale: { livestreamId: livestream.id, count: 4 } }],
  )
  const { text } = await api.raw('GET', '/metrics')
  t.match(text, /^hub_deliveries_stale_total 4$/m)

  const since = new Date(begin).toISOString()
  receiver.received.length = 0
  await api.call('PUT', '/pubsub', { token, body: { subscription: name, since } })
  await hub.until(async () => (await shown(name)).pending === 0)
  t.same(titles(), ['0', '1', '2', '3', '5', '4'], 'what somebody asks for is worth it')
  t.match(await shown(name), { stale: 4 })
})

onEachStore('in seconds, and at most 15 s between two attempts', async (t, store) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const hub = await startTestHub(t, { ...store, ...pushing(receiver) }, home)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const livestream = station()
  const publish = (title: string) =>
    api.call('POST', '/events/de.org.hub.v1.radio.track.playing', {
      token,
      body: { ...playing(livestream), title },
    })
  await publish('makes the topic')
  const ask = (maxAge: unknown, path = '/hook') =>
    api.call('POST', '/subscriptions', {
      token,
      body: webhookBody(receiver.url(path), livestream.id, { maxAge }),
    })
  for (const wrong of [0, -1, 1.5, 604_801, '60', 'elements', null, true, [], {}]) {
    const { status, json } = await ask(wrong)
    t.match(
      { status, errors: json.errors },
      { status: 400, errors: [{ path: '.body.maxAge' }] },
      String(wrong),
    )
  }
  const queue = async (name: unknown) => {
    const queues = await hub.ask<{ name: string; nextTry: string | null; stale: number }[]>('queues.list')
    return queues.find((one) => one.name === name)
  }
  receiver.behave((_pushed, response) => {
    response.writeHead(503, { 'retry-after': '3600' }).end()
    return undefined
  })
  const { name: patient } = (await ask(3_600, '/patient')).json
  const { name: hasty } = (await ask(1, '/hasty')).json
  await publish('One')
  await hub.until(async () => typeof (await queue(patient))?.nextTry === 'string')
  const nextTry = Date.parse((await queue(patient))?.nextTry ?? '')
  t.ok(nextTry < Date.now() + 15_000, 'whatever it asks for')
  await hub.until(async () => (await queue(hasty))?.stale === 1)
  const titlesAt = (wanted: string) =>
    receiver.received.flatMap(({ path, event }) => (path === wanted ? [event.title] : []))
  receiver.received.length = 0
  receiver.behave(() => 201)
  // On a busy machine an event may be a second old before it is sent.
  for (let nth = 2; titlesAt('/hasty').length === 0; nth++) {
    await publish(`${nth}`)
    await comes(() => titlesAt('/hasty').length > 0, 1_000)
  }
  t.notOk(titlesAt('/hasty').includes('One'), 'it is too old')
  await receiver.until(() => titlesAt('/patient').includes('One'))
})

t.test('a clock that is set right ends what is over by now, and makes nothing older', async (t) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const clock = join(home, 'clock')
  await setClock(0)
  const hub = await spawnHub(t, home, { ...pushing(receiver), NODE_OPTIONS: clockOf(clock) })
  const ask = <Result>(command: string, args: Record<string, unknown> = {}) =>
    askNode<Result>(hub.adminSocket, command, args)
  const api = await openApi(t, hub)
  const { token } = await addUser({ ask }, api, own)
  const livestream = station()
  const { client } = await connect(
    t,
    hub,
    await ask<Issued>('credentials.add', { role: 'publisher', label: 'studio', institutions: [own] }),
  )
  const publish = (event: object) => client.publishAsync(`inbox/${own}`, JSON.stringify(event), { qos: 1 })
  await publish(playing(livestream, { title: 'makes the topic' }))
  const subscribe = async (fields: object) => {
    const url = receiver.url()
    const body = webhookBody(url, livestream.id, fields)
    const { name } = (await api.call('POST', '/subscriptions', { token, body })).json
    await ask('subscriptions.pause', { name })
    return String(name)
  }
  const names = [
    await subscribe({ kinds: ['playing'], maxAge: 600 }),
    await subscribe({ kinds: ['control'], maxAge: 'element' }),
  ]

  await setClock(-3_600_000)
  const validUntil = new Date(Date.now() - 3_600_000 + 60_000).toISOString()
  await publish(playing(livestream, { title: 'accepted while the clock was behind' }))
  await publish(control(livestream, { time: new Date(0).toISOString(), validUntil }))
  await setClock(0)
  for (const name of names) await ask('subscriptions.resume', { name })

  await publish(control(livestream, { name: 'of now' }))
  await receiver.until((received) => received.length === 2)
  const got = receiver.received.map(({ event }) => event.title ?? event.name)
  t.same(got.sort(), ['accepted while the clock was behind', 'of now'])
  const stale = names.map(
    async (name) => (await ask<ShownSubscription>('subscriptions.show', { name })).stale,
  )
  t.same(
    await Promise.all(stale),
    [0, 1],
    'seconds count by a clock that does not jump, instants by the one of now',
  )

  /** In one step: the node may read the file at any moment. */
  async function setClock(aheadMs: number): Promise<void> {
    await writeFile(`${clock}.new`, String(aheadMs))
    await rename(`${clock}.new`, clock)
  }
})
