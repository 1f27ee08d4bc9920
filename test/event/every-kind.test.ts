import { readFileSync } from 'node:fs'
import t from 'tap'
import { connectSubscriber } from '../../client/node.ts'
import { eventKinds } from '../../event/kind.ts'
import { radioTopic } from '../../event/topic.ts'
import { addUser, openApi } from '../bridge-https/api.ts'
import { type Arrived, connect, connectPublisher } from '../clients.ts'
import { exampleOf, station } from '../events.ts'
import { startTestHub } from '../start-hub.ts'

/* Each kind of event goes the way that its row says, from its publisher to all who read. */

const livestream = station()
const institution = livestream.institution.id
const topicOf = (kind: { suffix: string }) => radioTopic(livestream.id, kind)

t.test('over MQTT to those who listen, to late ones, to those who return, and to the library', async (t) => {
  const hub = await startTestHub(t)
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const login = await hub.subscriber('radio/#')
  const listener = await connect(t, hub, login)
  await listener.client.subscribeAsync('radio/#', { qos: 1 })
  const session = { clientId: 'away', clean: false }
  const away = await connect(t, hub, login, session)
  await away.client.subscribeAsync('radio/#', { qos: 1 })
  await away.client.endAsync()
  const library = connectSubscriber({
    url: `mqtts://localhost:${hub.mqttPort}`,
    ca: readFileSync(hub.caPath, 'utf8'),
    ...login,
    filters: ['radio/#'],
  })
  t.teardown(library.close)
  const told = library[Symbol.asyncIterator]()
  while (library.state !== 'live') await new Promise((resolve) => library.on('state', resolve))

  const ids = new Map<string, (string | null)[]>()
  for (const kind of eventKinds) {
    const time = Date.now()
    const events = [time - 1, time].map((at) =>
      exampleOf(kind, livestream, {
        [kind.timeField]: new Date(at).toISOString(),
        // What plays already is not next.
        ...('playlistItemId' in kind.example && { playlistItemId: kind.suffix }),
      }),
    )
    for (const event of events) {
      const { outcome, id } = await publisher.publish(event)
      t.equal(outcome, 'published', kind.name)
      ids.set(topicOf(kind), [...(ids.get(topicOf(kind)) ?? []), id])
      const { value } = await told.next()
      t.match(value, { kind: kind.suffix.split('/').at(-1), livestreamId: livestream.id, event: { id } })
    }
    if (kind.class === 'track')
      t.match(library.nowPlaying.get(livestream.id), { [String(kind.suffix.split('/').at(-1))]: {} })
  }
  await listener.received.count(2 * eventKinds.length)
  t.strictSame(idsIn(listener.received.all), ids)

  const late = await connect(t, hub, login)
  await late.client.subscribeAsync('radio/#', { qos: 1 })
  await late.received.count(eventKinds.length)
  t.strictSame(idsIn(late.received.all), new Map([...ids].map(([topic, [, second]]) => [topic, [second]])))

  const returned = await connect(t, hub, login, session)
  const expected = eventKinds.map((kind) => {
    const [first, second] = ids.get(topicOf(kind)) ?? []
    return [topicOf(kind), kind.keep === 'every' ? [first, second] : [second]] as const
  })
  await returned.received.count(expected.flatMap(([, kept]) => kept).length)
  t.strictSame(idsIn(returned.received.all), new Map(expected))

  const { events } = await hub.ask<{ events: { event: string }[] }>('events.list', {
    livestream: livestream.id,
  })
  t.strictSame(
    events.map(({ event }) => event).sort(),
    eventKinds.flatMap(({ name }) => [name, name]).sort(),
    'the lists of operators',
  )
})

t.test('over HTTPS, where the row says so', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, institution)
  const listener = await connect(t, hub, await hub.subscriber('radio/#'))
  await listener.client.subscribeAsync('radio/#', { qos: 1 })
  for (const kind of eventKinds) {
    const publish = () =>
      api.call('POST', `/events/${kind.name}`, { token, body: exampleOf(kind, livestream) })
    const isTaken = kind.doors.includes('https')
    t.equal((await publish()).status, isTaken ? 201 : 400, kind.name)
    if (!isTaken) continue
    // The first event only made the topic.
    const { id } = Object((await publish()).json.event)
    const { json } = await listener.received.until(({ json }) => json.id === id)
    t.match(json, { event: kind.name, title: kind.example.title })
  }
})

/** The ids of the events by topic, in their order. */
function idsIn(arrived: readonly Arrived[]): Map<string, unknown[]> {
  const ids = new Map<string, unknown[]>()
  for (const { topic, json } of arrived) ids.set(topic, [...(ids.get(topic) ?? []), json.id])
  return ids
}
