import { join } from 'node:path'
import type { EventDelivery } from '../../delivery/event-deliveries.ts'
import { addUser, openApi } from '../bridge-https/api.ts'
import { writeConfig } from '../bridge-https/users/write-config.ts'
import { runHubctl } from '../cli/run-hubctl.ts'
import { connectPublisher } from '../clients.ts'
import { control, institutions, playing, station } from '../events.ts'
import { pushing, startReceiver, webhookBody } from '../receiver.ts'
import { startTestHub, temporaryDirectory } from '../start-hub.ts'
import { onStore } from '../stores.ts'

const [own = ''] = institutions
const livestream = station()

onStore(
  'embedded',
  'an event is shown with what became of it at webhooks and plugin targets',
  async (t, store) => {
    const home = await temporaryDirectory(t)
    const receiver = await startReceiver(t, home)
    receiver.behave(({ path }) => (path === '/broken' ? 500 : 201))
    const plugins = [{ type: 'dts', autoEnable: true, url: receiver.url('/plugin?key=geheim') }]
    const env = { ...store, ...pushing(receiver), HUB_CONFIG: await writeConfig(t, { plugins }) }
    const hub = await startTestHub(t, env, join(home, 'hub'))
    const api = await openApi(t, hub)
    const { token } = await addUser(hub, api, own)
    const studio = await connectPublisher(t, hub, await hub.publisher([own]), own)
    const before = await studio.publish(playing(livestream, { title: 'Makes the topic' }))
    const subscribe = async (path: string) => {
      const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic: livestream.id }
      const sent = { token, body: { ...body, url: receiver.url(path) } }
      return String((await api.call('POST', '/subscriptions', sent)).json.name)
    }
    const [good, broken] = [await subscribe('/hook'), await subscribe('/broken')]
    const { id } = await studio.publish(playing(livestream, { title: 'One' }))
    const later = await studio.publish(playing(livestream, { title: 'Two' }))
    const traffic = await studio.publish(control(livestream))

    const deliveries = async (asked: string | null) =>
      (await hub.ask<{ deliveries: EventDelivery[] }>('events.show', { id: asked })).deliveries
    const states = async (asked: string | null) =>
      Object.fromEntries((await deliveries(asked)).map(({ queue, state }) => [queue, state]))
    const expected = { [good]: 'delivered', [broken]: 'retrying', 'plugins.dts': 'delivered' }
    await hub.until(async () => JSON.stringify(await states(id)) === JSON.stringify(expected))
    t.match(
      (await deliveries(id)).find(({ queue }) => queue === broken),
      { target: receiver.url('/broken'), attempts: [{ messageId: id, status: 500, reason: String }] },
    )
    t.match(
      (await deliveries(id)).find(({ queue }) => queue === 'plugins.dts'),
      { target: receiver.url('/plugin?key=***') },
      'secrets are masked, as in hubctl config',
    )
    await hub.until(async () => (await states(later.id))[good] === 'delivered')
    const [dts] = (await hub.ask<{ name: string }[]>('queues.list')).filter(
      ({ name }) => name === 'plugins.dts',
    )
    t.match(dts, { target: receiver.url('/plugin?key=***') })
    const contacts = (await hub.ask<{ name: string; contact: string | null }[]>('queues.list')).map(
      ({ name, contact }) => [name, contact],
    )
    t.same(Object.fromEntries(contacts), {
      [good]: 'a@b.example',
      [broken]: 'a@b.example',
      'plugins.dts': null,
    })
    t.equal((await states(later.id))[broken], 'waiting', 'behind the one that is tried again')
    const behind = async (asked: string | null) =>
      (await deliveries(asked)).map(({ queue, behind }) => [queue, behind]).sort()
    const nothing = [
      ['plugins.dts', null],
      [good, null],
    ]
    await hub.ask('subscriptions.pause', { name: broken })
    const held = async (asked: string | null) =>
      Object.fromEntries((await deliveries(asked)).map(({ queue, held }) => [queue, held]))
    t.same(await held(later.id), { [good]: null, [broken]: 'paused', 'plugins.dts': null })
    const printed = await runHubctl(['--socket', hub.adminSocket, 'events', 'show', String(later.id)])
    t.match(printed.stdout, /waiting, paused behind /)
    await hub.ask('subscriptions.resume', { name: broken })
    t.same(await held(later.id), { [good]: null, [broken]: null, 'plugins.dts': null })
    t.same(await behind(later.id), [...nothing, [broken, id]].sort())
    t.same(await behind(id), [...nothing, [broken, null]].sort(), 'the first waits for nothing')
    t.same(await states(before.id), { 'plugins.dts': 'delivered' }, 'subscriptions of later do not count')
    await hub.ask('queues.replay', { name: good, since: '2000-01-01T00:00:00Z' })
    await hub.until(async () => (await states(before.id))[good] === 'delivered')
    t.equal((await states(before.id))[broken], undefined, 'unless it was replayed to them')
    t.same(await states(traffic.id), {}, 'webhooks get track events only')
  },
)

onStore(
  'embedded',
  'an event that was passed over is stale at its webhook and plugin target',
  async (t, store) => {
    const home = await temporaryDirectory(t)
    const receiver = await startReceiver(t, home)
    receiver.behave(() => 500)
    const plugins = [{ type: 'dts', autoEnable: true, maxAge: 'element', url: receiver.url('/plugin') }]
    const env = { ...store, ...pushing(receiver), HUB_CONFIG: await writeConfig(t, { plugins }) }
    const hub = await startTestHub(t, env, join(home, 'hub'))
    const api = await openApi(t, hub)
    const { token } = await addUser(hub, api, own)
    const studio = await connectPublisher(t, hub, await hub.publisher([own]), own)
    await studio.publish(playing(livestream, { title: 'Makes the topic' }))
    const body = webhookBody(receiver.url('/hook'), livestream.id, { maxAge: 'element' })
    const { json } = await api.call('POST', '/subscriptions', { token, body })
    const name = String(json.name)
    const published: string[] = []
    for (const title of ['One', 'Two', 'Three'])
      published.push(String((await studio.publish(playing(livestream, { title }))).id))
    const states = async (queue: string) =>
      Promise.all(
        published.map(async (id) => {
          const { deliveries } = await hub.ask<{ deliveries: EventDelivery[] }>('events.show', { id })
          return deliveries.find((delivery) => delivery.queue === queue)?.state
        }),
      )
    for (const queue of [name, 'plugins.dts'])
      await hub.until(async () => (await states(queue)).join() === 'stale,stale,retrying')
    receiver.behave(() => 201)
    await hub.until(async () => (await states(name)).join() === 'stale,stale,delivered')
    const explained = await runHubctl(['--socket', hub.adminSocket, 'explain', published[0] ?? ''])
    t.match(explained.stdout, /hook\): stale/)
  },
)
