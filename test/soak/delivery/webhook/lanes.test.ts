import type { ServerResponse } from 'node:http'
import { addUser, openApi } from '../../../bridge-https/api.ts'
import { writeConfig } from '../../../bridge-https/users/write-config.ts'
import { connectPublisher } from '../../../clients.ts'
import { institutions, playing, serviceOf, station } from '../../../events.ts'
import { type Pushed, pushing, startReceiver, webhookBody } from '../../../receiver.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'
import { onEachStore } from '../../../stores.ts'

/*
 * Plugin targets, and webhooks that ask for it, deliver different livestreams side by side (deliveries.md, "Lanes").
 */

const [own = ''] = institutions
const [first, second] = [station(0, 0), station(0, 1)]
const both = [serviceOf(first), serviceOf(second)]

onEachStore('a livestream that hangs holds back itself', async (t, store) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const plugins = [{ type: 'dts', autoEnable: true, url: receiver.url('/plugin') }]
  const HUB_CONFIG = await writeConfig(t, { plugins })
  const hub = await startTestHub(t, { ...store, ...pushing(receiver), HUB_CONFIG }, home)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const studio = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const publish = (title: string, fields: object, livestream = first) =>
    studio.publish(playing(livestream, { title, ...fields }))
  await publish('makes the topics', { services: both })
  for (const [path, ordering] of [
    ['/lanes', 'livestream'],
    ['/all', 'all'],
  ] as const) {
    const body = webhookBody(receiver.url(path), first.id, { livestreams: [second.id], ordering })
    const { status, json } = await api.call('POST', '/subscriptions', { token, body })
    t.match(
      { status, ordering: json.ordering },
      { status: 201, ordering: ordering === 'all' ? undefined : ordering },
    )
    t.match(await hub.ask('subscriptions.show', { name: String(json.name) }), { ordering })
  }
  await receiver.until((received) => received.length === 1) // the plugin target has the one before

  const titleOf = ({ path, event }: Pushed) =>
    String(path === '/plugin' ? Object(event.event).title : event.title)
  const at = (path: string) => receiver.received.filter((pushed) => pushed.path === path).map(titleOf)
  const hanging: ServerResponse[] = []
  receiver.behave((pushed, response) => {
    if (titleOf(pushed) !== 'hangs') return 201
    hanging.push(response)
    return undefined
  })
  await publish('hangs', {})
  await publish('behind it', {})
  await publish('beside it', {}, second)
  await publish('for both', { services: both })
  await publish('after both', {}, second)
  await receiver.until(() => ['/plugin', '/lanes'].every((path) => at(path).includes('beside it')))
  await receiver.until(() => hanging.length === 3)
  t.same(at('/plugin').slice(1).sort(), ['beside it', 'hangs'])
  t.same(at('/lanes').sort(), ['beside it', 'hangs'])
  t.same(at('/all'), ['hangs'], 'one order over all')
  for (const response of hanging) response.writeHead(201).end()
  await receiver.until((received) => received.length === 16)
  for (const path of ['/plugin', '/lanes']) {
    t.same(at(path).slice(-3), ['behind it', 'for both', 'after both'], 'each in order')
  }
  t.same(at('/all'), ['hangs', 'behind it', 'beside it', 'for both', 'after both'])
})
