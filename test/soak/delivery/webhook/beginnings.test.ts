import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { itemChange, readWork } from '../../../../delivery/queue/work-records.ts'
import { openJournal } from '../../../../journal/journal.ts'
import { addUser, openApi } from '../../../bridge-https/api.ts'
import { connectPublisher } from '../../../clients.ts'
import { institutions, playing, station } from '../../../events.ts'
import { pushing, type Receiver, startReceiver } from '../../../receiver.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'
import { onEachStore, onStore, openStoreOf, type StoreSettings } from '../../../stores.ts'

/*
 * A webhook whose subscription has `from` gets all events accepted since then, each once and in order.
 */
const [own = ''] = institutions
const long = '2000-01-01T00:00:00Z'

/** Starts a hub with a publisher, and a receiver. Each path of the receiver can be a webhook. */
async function start(t: Test, store: StoreSettings = {}, settings: Record<string, string> = {}) {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const env = { ...store, ...pushing(receiver), HUB_PUBLIC_URL: 'https://hub.example', ...settings }
  const open = async () => {
    const hub = await startTestHub(t, env, home)
    return { hub, api: await openApi(t, hub) }
  }
  let { hub, api } = await open()
  const { token } = await addUser(hub, api, own)
  const studio = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const call = (method: string, path: string, body?: object) => api.call(method, path, { token, body })
  const topic = station().id

  return {
    home,
    receiver,
    call,
    publish: (title: string, fields: object = {}) => studio.publish(playing(station(), { title, ...fields })),
    async subscribe(path: string, more: object = {}): Promise<string> {
      const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic, url: receiver.url(path) }
      const { status, json } = await call('POST', '/subscriptions', { ...body, ...more })
      t.equal(status, 201)
      return String(json.name)
    },
    /** The accepted events, the oldest first. */
    async accepted(): Promise<{ title: string; at: string }[]> {
      const { json } = await call('GET', `/livestreams/${topic}/events?limit=200`)
      const events = json.events as { acceptedAt: string; event: { title: string } }[]
      return events.reverse().map(({ acceptedAt, event }) => ({ title: event.title, at: acceptedAt }))
    },
    ask: <Result>(command: string, args?: Record<string, unknown>): Promise<Result> => hub.ask(command, args),
    /** Resolves when the webhook has acknowledged every delivery, and the acknowledgements are stored. */
    untilIdle: async (name: string) =>
      hub.until(async () => {
        const { state } = await hub.ask<{ state: string }>('subscriptions.show', { name })
        return state === 'idle'
      }),
    /** Stops the hub, calls `change` with its store, and starts the hub again. */
    async restart(change: (opened: Awaited<ReturnType<typeof openStoreOf>>) => Promise<unknown>) {
      await studio.client.endAsync(true)
      await hub.close()
      const opened = await openStoreOf(store, join(home, 'data'))
      await change(opened)
      await opened.close()
      ;({ hub, api } = await open())
    },
  }
}

/** The titles of the events that a webhook got, in the order of arrival. */
function titlesAt({ received }: Pick<Receiver, 'received'>, path: string): string[] {
  return received.filter((pushed) => pushed.path === path).map(({ event }) => String(event.title))
}

onEachStore('a new webhook begins with what was accepted from a time on', async (t, store) => {
  const { receiver, publish, subscribe, accepted, call, ask, untilIdle } = await start(t, store)
  const { id } = await publish('one')
  for (const title of ['two', 'three', 'four']) await publish(title)
  const events = await accepted()
  const from = events[2]?.at ?? ''
  const expected = events.filter(({ at }) => at >= from).map(({ title }) => title)
  await subscribe('/from', { from })
  await subscribe('/new')
  const name = await subscribe('/all', { from: '2000-01-01T01:00:00+01:00' })
  await publish('five')
  await receiver.until(({ length }) => length >= expected.length + 1 + 1 + 5)
  t.same(titlesAt(receiver, '/from'), [...expected, 'five'])
  t.same(titlesAt(receiver, '/new'), ['five'], 'without it as ever')
  const shown = (await call('GET', '/subscriptions')).json as unknown as { name: string; from?: string }[]
  t.same(
    shown.map((subscription) => subscription.from),
    [from, undefined, '2000-01-01T00:00:00.000Z'],
    'and each says since when',
  )
  t.match(await ask('subscriptions.show', { name }), { from: '2000-01-01T00:00:00.000Z' })
  await untilIdle(name)
  t.same(titlesAt(receiver, '/all'), ['one', 'two', 'three', 'four', 'five'])
  const earlier = receiver.received.find(({ path }) => path === '/from')
  t.equal(earlier?.body.message.publishTime, from, 'as it would have come then')
  t.match(earlier?.body.message.attributes, { livestreamId: station().id, institutionId: own })
  const { deliveries } = await ask<{ deliveries: unknown[] }>('events.show', { id })
  t.match(deliveries, [{ queue: name }], 'of the first event only that webhook is shown')
})

onEachStore('while events come in, none is lost and none comes twice', async (t, store) => {
  const { receiver, publish, subscribe, accepted } = await start(t, store)
  await publish('0')
  const paths = Array.from({ length: 10 }, (_, number) => `/${number}`)
  let isDone = false
  const publishing = (async () => {
    for (let number = 1; !isDone; number++) await publish(String(number))
  })()
  await Promise.all(paths.map((path) => subscribe(path, { from: long })))
  isDone = true
  await publishing
  await publish('last')
  const all = (await accepted()).map(({ title }) => title)
  await receiver.until(({ length }) => length >= all.length * paths.length)
  for (const path of paths) t.same(titlesAt(receiver, path), all, `${path} has all of them, in order`)
})

onEachStore('a beginning that a crash ended is made at the next start', async (t, store) => {
  const { receiver, publish, subscribe, restart, ask } = await start(t, store)
  const { id } = await publish('one')
  for (const title of ['two', 'three']) await publish(title)
  const name = await subscribe('/hook')
  await ask('subscriptions.pause', { name })
  await publish('four')
  await restart(async (opened) => {
    // The store as after the first commit of a beginning: a subscription with the mark `isBeginning`, and the first of
    // three earlier events in its queue.
    const key = `subscription/${name}`
    const { pausedAt: _, pausedBy: __, ...subscription } = JSON.parse(String(await opened.get(key)))
    const [[queue, later] = ['']] = (await readWork(opened)).items
    if (!later) throw new Error('nothing waits')
    const position = later.position - 6 // three events back: an event and its report take two positions
    const payload = (await (await openJournal(opened)).get(position))?.payload
    t.equal(JSON.parse(String(payload)).id, id)
    const item = { ...later, position: 0, sequence: position, messageId: String(id) }
    await opened.commit([
      { put: key, value: JSON.stringify({ ...subscription, from: long, isBeginning: true }) },
      itemChange(queue, item, payload),
    ])
  })
  await receiver.until(({ length }) => length >= 4)
  t.same(titlesAt(receiver, '/hook'), ['one', 'two', 'three', 'four'])
  await ask('subscriptions.pause', { name })
  await restart(async () => undefined)
  await ask('subscriptions.resume', { name })
  t.match(await ask('subscriptions.show', { name }), { pending: 0, deadLetters: 0 }, 'once, and never again')
})

onEachStore('what a webhook begins with keeps its order over a pause and a restart', async (t, store) => {
  const { receiver, publish, subscribe, restart, ask } = await start(t, store)
  receiver.behave(() => 503)
  for (const title of ['one', 'two']) await publish(title)
  const name = await subscribe('/hook', { from: long })
  await ask('subscriptions.pause', { name })
  await publish('three')
  await restart(async () => undefined)
  const tried = receiver.received.length
  receiver.behave(() => 201)
  await ask('subscriptions.resume', { name })
  await receiver.until(({ length }) => length >= tried + 3)
  t.same(titlesAt(receiver, '/hook').slice(tried), ['one', 'two', 'three'])
})

onEachStore('it begins with as many as its queue holds, the newest', async (t, store) => {
  const { receiver, publish, subscribe } = await start(t, store, { HUB_WORK_QUEUE_LIMIT: '3' })
  for (const title of ['one', 'two', 'three', 'four', 'five']) await publish(title)
  await subscribe('/hook', { from: long })
  await receiver.until(({ length }) => length >= 3)
  await publish('six')
  await receiver.until(({ length }) => length >= 4)
  t.same(titlesAt(receiver, '/hook'), ['three', 'four', 'five', 'six'])
})

onStore('embedded', 'a repetition makes no event newer than it is', async (t, store) => {
  const { receiver, publish, subscribe } = await start(t, store)
  const same = { start: new Date().toISOString() }
  await publish('old', same)
  // The hub also sends events from the last second before `from`. The first `old` must be earlier.
  await setTimeout(1_100)
  const from = new Date().toISOString()
  for (const title of ['old', 'new']) await publish(title, same)
  await subscribe('/hook', { from })
  for (const title of ['new', 'last']) await publish(title, same)
  await receiver.until(({ length }) => length >= 2)
  t.same(titlesAt(receiver, '/hook'), ['new', 'last'])
})

onStore('embedded', 'what its first try did not publish is none of the beginning', async (t, store) => {
  const { receiver, call, subscribe } = await start(t, store)
  const event = playing(station(), { title: 'one', start: new Date().toISOString() })
  const post = async (body: object) => (await call('POST', `/events/${event.event}`, body)).json.statuses
  t.match(await post(event), { published: 0, failed: 1 }, 'its topic is created')
  await subscribe('/hook', { from: long })
  t.match(await post(event), { published: 1, failed: 0 }, 'and now it is published')
  await post(event)
  await post({ ...event, title: 'two' })
  await receiver.until(({ length }) => length >= 2)
  t.same(titlesAt(receiver, '/hook'), ['one', 'two'])
})

onEachStore('an event that is repeated comes once, before or after the beginning', async (t, store) => {
  const { receiver, publish, subscribe } = await start(t, store)
  const same = { start: new Date().toISOString() }
  for (const title of ['one', 'two', 'one']) await publish(title, same)
  await subscribe('/hook', { from: long })
  for (const title of ['two', 'three', 'one', 'three', 'four']) await publish(title, same)
  await receiver.until(({ length }) => length >= 4)
  t.same(titlesAt(receiver, '/hook'), ['one', 'two', 'three', 'four'])
})

test('an instant that is none, or has not passed, is a 400 with its place', async (t) => {
  const { publish, subscribe, call } = await start(t)
  await publish('one')
  const url = 'https://localhost/hook'
  const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic: station().id, url }
  const subscription = await subscribe('/hook')
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
  const wrong = [
    ['yesterday', 'format.openapi.validation'],
    ['2026-01-31', 'format.openapi.validation'],
    ['2026-02-30T12:00:00Z', 'format.openapi.validation'],
    ['2026-01-31T12:00:00', 'format.openapi.validation'],
    ['', 'format.openapi.validation'],
    [1_785_672_000_000, 'type.openapi.validation'],
    [null, 'type.openapi.validation'],
    [[long], 'type.openapi.validation'],
  ] as const
  for (const [path, given, of, future] of [
    ['/subscriptions', body, 'from', 'subscription.from'],
    ['/pubsub', { subscription }, 'since', 'replay.since'],
  ] as const) {
    for (const [value, errorCode] of [...wrong, [tomorrow, future] as const]) {
      const { status, json } = await call(path === '/pubsub' ? 'PUT' : 'POST', path, {
        ...given,
        [of]: value,
      })
      t.equal(status, 400, `${of} ${JSON.stringify(value)}`)
      t.match(json, { errors: [{ path: `.body.${of}`, errorCode }] })
      t.match(Object(json.errors)[0].message, /expected (an ISO 8601 instant|an instant that has|string)/)
    }
  }
  const { json } = await call('PUT', '/pubsub', { subscription, messageId: '1', since: long })
  t.match(json, { errors: [{ path: '.body.since', message: /leave out messageId/ }] })
  t.same((await call('GET', '/subscriptions')).json.length, 1, 'and no webhook was made')
})
