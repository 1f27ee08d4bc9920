import { join } from 'node:path'
import type { Test } from 'tap'
import { addUser, openApi } from '../../../bridge-https/api.ts'
import { writeConfig } from '../../../bridge-https/users/write-config.ts'
import { institutions, playing, station } from '../../../events.ts'
import { pushing, startReceiver } from '../../../receiver.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'
import { onEachStore, openStoreOf, type StoreSettings } from '../../../stores.ts'

/*
 * After `hubctl lifecycle retire push`, the hub sends nothing to webhooks, but still sends to plugin targets.
 */
const [own = ''] = institutions
const playingUrl = '/events/de.org.hub.v1.radio.track.playing'
const link = 'https://hub.example/migration'

interface Queue {
  name: string
  state: string
  pending: number
  deadLetters: number
}

async function start(t: Test, store: StoreSettings) {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const plugins = [{ type: 'dts', autoEnable: true, url: receiver.url('/plugin') }]
  const env = {
    ...store,
    ...pushing(receiver),
    HUB_CONFIG: await writeConfig(t, { plugins }),
    HUB_PUBLIC_URL: 'https://hub.example',
  }
  let hub = await startTestHub(t, env, home)
  let api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const publish = async (title: string) =>
    void (await api.call('POST', playingUrl, { token, body: { ...playing(station()), title } }))
  await publish('makes the topic')
  const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic: station().id }
  const { json } = await api.call('POST', '/subscriptions', {
    token,
    body: { ...body, url: receiver.url('/hook') },
  })
  const name = String(json.name)
  const ofPath = (path: string) => receiver.received.filter((pushed) => pushed.path === path)
  return {
    receiver,
    publish,
    name,
    token,
    hooked: () => ofPath('/hook').map(({ event }) => event.title),
    worked: () => ofPath('/plugin').map(({ body }) => Object(body).event.title),
    call: (method: string, path: string, sent?: object) => api.call(method, path, { token, body: sent }),
    ask: <Result>(command: string, args?: Record<string, unknown>) => hub.ask<Result>(command, args),
    until: async (holds: (queue: Queue) => boolean) =>
      hub.until(async () => {
        const queue = (await hub.ask<Queue[]>('queues.list')).find((one) => one.name === name)
        return queue !== undefined && holds(queue)
      }),
    async stop(): Promise<void> {
      await hub.close()
    },
    /** Changes the store of the stopped hub: removes the entries with the prefix `without`, and stores `put`. */
    async change(without: string, put: Record<string, object> = {}): Promise<void> {
      const opened = await openStoreOf(store, join(home, 'data'))
      for await (const [key] of opened.range(without)) await opened.commit([{ del: key }])
      for (const [key, value] of Object.entries(put)) {
        await opened.commit([{ put: key, value: JSON.stringify(value) }])
      }
      await opened.close()
    },
    async start(): Promise<void> {
      hub = await startTestHub(t, env, home)
      api = await openApi(t, hub)
    },
  }
}

type One = Awaited<ReturnType<typeof start>>

/** Publishes two events while the webhook answers 503. */
async function withTwoWaiting(one: One): Promise<void> {
  one.receiver.behave(({ path }) => (path === '/hook' ? 503 : 201))
  await one.publish('One')
  await one.publish('Two')
  await one.receiver.until(() => one.hooked().length >= 1 && one.worked().includes('Two'))
}

async function isClosed(t: Test, one: One): Promise<void> {
  await one.until(({ pending }) => pending === 0)
  t.match(
    (await one.ask<Queue[]>('queues.list')).find(({ name }) => name === one.name),
    { state: 'closed', pending: 0 },
  )
  const letters = await one.ask<{ reason: string }[]>('queues.dead-letters', { name: one.name })
  t.equal(letters.length, 2)
  for (const { reason } of letters) t.match(reason, /^push has retired on \d{4}-/)
  await t.rejects(one.ask('queues.replay', { name: one.name }), {
    message: /nothing is replayed: push has retired/,
  })
  const tried = one.hooked().length
  one.receiver.behave(() => 201)
  await one.publish('Three')
  await one.receiver.until(() => one.worked().includes('Three'))
  t.equal(one.hooked().length, tried, 'nothing was sent, and the plugin target goes on')
  t.equal((await one.ask<unknown[]>('queues.dead-letters', { name: one.name })).length, 2, 'or collected')
}

onEachStore('a retired push closes the queues, and what waits is listed', async (t, store) => {
  const one = await start(t, store)
  await withTwoWaiting(one)
  await one.stop()
  await one.change('traffic/')
  await one.start()
  await one.ask('lifecycle.announce', { track: 'push', sunset: '2020-01-01', link })
  t.match(await one.ask('lifecycle.retire', { track: 'push' }), { state: 'gone' })
  await isClosed(t, one)
  t.equal((await one.call('POST', `/subscriptions/${one.name}/test`)).status, 410)
  t.equal((await one.call('PUT', '/pubsub', { subscription: one.name })).status, 410)
  await one.stop()
  await one.start()
  await isClosed(t, one)
})

onEachStore('what a crash left open is closed by the next start', async (t, store) => {
  const one = await start(t, store)
  await withTwoWaiting(one)
  await one.stop()
  // The state after a crash between storing the retirement and closing the queue.
  const at = new Date().toISOString()
  const gone = { track: 'push', state: 'gone', announcedAt: at, sunset: at, link, retiredAt: at }
  await one.change('traffic/', { 'lifecycle/push': gone })
  await one.start()
  await isClosed(t, one)
})
