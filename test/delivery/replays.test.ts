import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import type { EventPage } from '../../journal/history/history.ts'
import { addUser, openApi } from '../bridge-https/api.ts'
import { connectPublisher } from '../clients.ts'
import { control, institutions, playing, serviceOf, station } from '../events.ts'
import { pushing, startReceiver } from '../receiver.ts'
import { startTestHub, temporaryDirectory } from '../start-hub.ts'
import { onEachStore } from '../stores.ts'
import { messagesAt, openQueues } from './open-queues.ts'

test('what waits takes no room from what does not', async (t) => {
  const { queues, journal, append, memory, drain } = await openQueues({ perQueue: 4 })
  for (const id of ['1', '2', '3', '4', '5']) await append(id, id === '3' || id === '5' ? 'a' : 'b')
  journal.raiseFloor(3)
  const stored = memory.keys('work/a/').length
  const count = await queues.repeat('a', messagesAt(1, 2, 3, 4, 5), async (count) => {
    t.equal(count, 2)
    t.equal(memory.keys('work/a/').length, stored, 'known before anything is changed')
  })
  t.equal(count, 2)
  t.same(await drain('a'), ['3', '5', '2', '4'], 'the newest, one copied and one in the journal')
})

test('where the first step fails nothing is repeated', async (t) => {
  const { queues, append, view } = await openQueues()
  await append('1', 'b')
  const failing = queues.repeat('a', messagesAt(1), () => Promise.reject(new Error('no audit')))
  await t.rejects(failing, { message: 'no audit' })
  t.equal(view('a').pending, 0)
})

const [own = '', foreign = ''] = institutions

onEachStore('a webhook gets once more what was accepted since a time', async (t, settings) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const config = join(home, 'hub.json')
  await writeFile(config, JSON.stringify({ plugins: [{ type: 'dts', url: receiver.url('/dts') }] }))
  const hub = await startTestHub(t, { ...settings, ...pushing(receiver), HUB_CONFIG: config }, home)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const publisher = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const publish = (title: string, livestream = station()) => publisher.publish(playing(livestream, { title }))
  const received = (count: number) => receiver.until((all) => all.length >= count)

  await publish('before')
  const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic: station().id }
  const { json } = await api.call('POST', '/subscriptions', { token, body: { ...body, url: receiver.url() } })
  const name = String(json.name)
  await publish('one')
  await received(1)
  for (const title of ['two', 'three']) await publish(title)
  await received(3)
  const [, second] = receiver.received
  const since = second?.body.message.publishTime ?? ''
  await publish('elsewhere', station(0, 1))
  await publisher.publish(control(station(), { name: 'state' }))
  receiver.behave(() => 500)
  await publish('waiting')
  await received(4)

  t.same(await hub.ask('queues.replay', { name, since }), { name, replayed: 2 }, 'without what waits already')
  receiver.behave(() => 201)
  const tried = receiver.received.length
  await received(tried + 3)
  const sent = receiver.received.slice(tried)
  t.same(
    sent.map(({ event }) => event.title),
    ['waiting', 'two', 'three'],
    'behind what waits, in order',
  )
  const said = (pushed = second) => ({ ...pushed?.body.message, publishTime: '' })
  t.same(said(sent[1]), said(second), 'as it was the first time')
  const all = '2000-01-01T00:00:00.000Z'
  t.match(
    await hub.ask('queues.replay', { name, since: all }),
    { replayed: 5 },
    'from before it was there, too',
  )
  await received(tried + 8)

  await hub.ask('subscriptions.pause', { name })
  const replay = { subscription: name, since: all }
  t.equal((await api.call('PUT', '/pubsub', { token, body: replay })).status, 409)
  await hub.ask('subscriptions.resume', { name })
  const answer = await api.call('PUT', '/pubsub', { token, body: replay })
  t.same(answer.json, { replayed: 5, trace: null }, 'its institution can do the same')
  await received(tried + 13)
  t.same(
    receiver.received.slice(tried + 8).map(({ event }) => event.title),
    ['before', 'one', 'two', 'three', 'waiting'],
  )
  const { token: stranger } = await addUser(hub, api, foreign)
  t.equal((await api.call('PUT', '/pubsub', { token: stranger, body: replay })).status, 404)
  const audit = await hub.ask<{ action: string; detail: unknown }[]>('audit')
  t.match(
    audit.filter(({ action }) => action === 'queues.replay').map(({ detail }) => detail),
    [
      { since: new Date(since).toISOString(), replayed: 2 },
      { since: all, replayed: 5 },
    ],
  )
  await t.rejects(hub.ask('queues.replay', { name, since: 'yesterday' }), {
    message: /since must be an instant/,
  })
  await t.rejects(hub.ask('queues.replay', { name: 'plugins.dts', since }), { message: /is not a webhook/ })
})

onEachStore('an event over HTTPS comes again as it came first', async (t, settings) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const hub = await startTestHub(t, { ...settings, ...pushing(receiver) }, home)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  // Over HTTPS, the services of an event need not name their institution.
  const { institutionId: _, ...service } = serviceOf(station())
  const publish = (title: string) => {
    const body = playing(station(), { title, services: [service] })
    return api.call('POST', '/events/de.org.hub.v1.radio.track.playing', { token, body })
  }
  await publish('makes the topic')
  const body = { type: 'PUBSUB', method: 'PUSH', contact: 'a@b.example', topic: station().id }
  const { json } = await api.call('POST', '/subscriptions', { token, body: { ...body, url: receiver.url() } })
  await publish('One')
  await receiver.until((all) => all.length === 1)
  // An event that still waits is not repeated.
  await hub.until(async () => (await hub.ask<{ pending: number }[]>('queues.list'))[0]?.pending === 0)
  await hub.ask('queues.replay', { name: String(json.name), since: '2000-01-01T00:00:00.000Z' })
  await receiver.until((all) => all.length === 2)
  const [first, again] = receiver.received
  t.equal(first?.body.message.attributes.institutionId, own)
  t.same({ ...again?.body.message, publishTime: '' }, { ...first?.body.message, publishTime: '' })
  const { events } = await hub.ask<EventPage>('events.list', { livestream: station().id })
  t.match(events, [{ title: 'One', institutionId: own }])
})
