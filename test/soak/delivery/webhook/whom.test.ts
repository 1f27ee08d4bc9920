import { addUser, openApi } from '../../../bridge-https/api.ts'
import { connect } from '../../../clients.ts'
import { control, institutions, playing, serviceOf, station } from '../../../events.ts'
import { pushing, startReceiver, webhookBody } from '../../../receiver.ts'
import { type Issued, startTestHub, temporaryDirectory } from '../../../start-hub.ts'
import { onEachStore } from '../../../stores.ts'

/*
 * Which events a webhook gets (deliveries.md, "Whom").
 */

const [own = ''] = institutions
const [first, second, third] = [station(0, 0), station(0, 1), station(0, 2)]

onEachStore('a webhook gets several livestreams, each event once, in one order', async (t, store) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const hub = await startTestHub(t, { ...store, ...pushing(receiver) }, home)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const login = await hub.ask<Issued>('credentials.add', {
    role: 'publisher',
    label: 'studio',
    institutions: [own],
  })
  const { client } = await connect(t, hub, login)
  const publish = (event: object) => client.publishAsync(`inbox/${own}`, JSON.stringify(event), { qos: 1 })
  const title = (livestream: typeof first, text: string, fields: object = {}) =>
    publish(playing(livestream, { title: text, ...fields }))
  await title(first, 'makes a topic')
  await title(second, 'makes a topic')
  const url = (name: string) => receiver.url(`/${name}`)
  const subscribe = (name: string, fields: object) =>
    api.call('POST', '/subscriptions', {
      token,
      body: webhookBody(url(name), first.id, fields),
    })
  const got = (name: string) =>
    receiver.received
      .filter(({ path }) => path === `/${name}`)
      .map(({ event, body }) => {
        const { livestreamId, livestreamIds } = body.message.attributes
        return [event.title ?? event.name, livestreamId, livestreamIds]
      })
  const untilIdle = () =>
    hub.until(async () => {
      const queues = await hub.ask<{ pending: number }[]>('queues.list')
      return queues.every(({ pending }) => pending === 0)
    })

  const list = await subscribe('list', { livestreams: [second.id] })
  t.match(list, { status: 201, json: { topic: { id: first.id }, livestreams: [second.id] } })
  t.equal((await subscribe('one', {})).status, 201)
  t.equal((await subscribe('all', { livestreams: ['*'] })).status, 201)
  t.equal((await subscribe('news', { livestreams: ['*'], types: ['news'] })).status, 201)
  const controls = await subscribe('controls', { kinds: ['control', 'playing'], maxAge: 'element' })
  t.match(controls.json, { kinds: ['control', 'playing'], maxAge: 'element' })
  const { name } = list.json
  t.match(await hub.ask('subscriptions.show', { name }), {
    livestreams: [second.id],
    kinds: null,
    types: null,
  })
  t.match(await hub.ask('subscriptions.list', { livestream: third.id }), { length: 2 }, 'those of all')
  t.match(await hub.ask('subscriptions.list', { livestream: second.id }), { length: 3 })

  const both = [serviceOf(second), serviceOf(first)]
  await title(first, 'A')
  await title(second, 'B')
  const together = playing(first, { title: 'both', services: both })
  await publish(together)
  await publish(together)
  await title(third, 'C', { type: 'news' })
  await publish(control(first))
  await untilIdle()
  const ids = [second.id, first.id].join()
  t.same(got('list'), [
    ['A', first.id, first.id],
    ['B', second.id, second.id],
    ['both', second.id, ids],
  ])
  t.same(got('one'), [
    ['A', first.id, undefined],
    ['both', first.id, undefined],
  ])
  t.same(got('all'), [...got('list'), ['C', third.id, third.id]], 'also one that had no topic before')
  t.same(got('news'), [['C', third.id, third.id]])
  t.same(got('controls'), [
    ['A', first.id, undefined],
    ['both', first.id, undefined],
    ['traffic-announcement', first.id, undefined],
  ])

  const since = new Date(Date.now() - 3_600_000).toISOString()
  const before = got('list').slice(-3)
  receiver.received.length = 0
  await api.call('PUT', '/pubsub', { token, body: { subscription: name, since } })
  t.match(await subscribe('from', { livestreams: ['*'], types: ['news'], from: since }), { status: 201 })
  await receiver.until((received) => received.length === 6)
  await untilIdle()
  t.same(got('list').slice(-3), before, 'a replay has the same attributes')
  t.equal(got('list').length, 5)
  t.same(got('from'), [['C', third.id, third.id]])

  for (const [fields, status, said] of [
    [{ livestreams: ['urn:org:permanent-livestream:0000000000000000'] }, 404, 'message'],
    [{ livestreams: ['*', second.id] }, 400, 'subscription.livestreams'],
    [{ livestreams: [] }, 400, 'minItems.openapi.validation'],
    [{ livestreams: '*' }, 400, 'type.openapi.validation'],
    [{ livestreams: Array.from({ length: 201 }, String) }, 400, 'maxItems.openapi.validation'],
    [{ kinds: ['track'] }, 400, 'enum.openapi.validation'],
    [{ types: ['Musik'] }, 400, 'enum.openapi.validation'],
    [{ delay: 300_001 }, 400, 'maximum.openapi.validation'],
  ] as const) {
    const answer = await subscribe('wrong', fields)
    t.equal(answer.status, status, JSON.stringify(fields).slice(0, 80))
    t.match(answer.text, said)
  }
})

onEachStore('one for all livestreams counts for each of them', async (t, store) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const hub = await startTestHub(t, { ...store, ...pushing(receiver) }, home)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  for (const livestream of [first, second]) {
    await api.call('POST', '/events/de.org.hub.v1.radio.track.playing', { token, body: playing(livestream) })
  }
  const subscribe = (topic: string, livestreams?: string[]) =>
    api.call('POST', '/subscriptions', {
      token,
      body: webhookBody(receiver.url(), topic, { livestreams }),
    })
  for (let count = 0; count < 49; count++) t.equal((await subscribe(first.id, [second.id])).status, 201)
  t.equal((await subscribe(first.id, ['*'])).status, 201)
  t.match(await subscribe(second.id), {
    status: 400,
    json: { errors: [{ errorCode: 'subscription.limit' }] },
  })
  t.match(await subscribe(first.id, ['*']), { status: 400 })
})
