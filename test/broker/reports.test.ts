import t from 'tap'
import { addUser, openApi } from '../bridge-https/api.ts'
import { connect, connectPublisher } from '../clients.ts'
import { playing, station } from '../events.ts'
import { startTestHub } from '../start-hub.ts'

const livestream = station(0, 0)
const institution = livestream.institution.id

t.test('a report names the client that published, whatever became of the event', async (t) => {
  const hub = await startTestHub(t)
  const login = await hub.publisher([institution])
  const watcher = await connectPublisher(t, hub, login, institution)
  // A client id is text of a stranger: quotes, markup, a line break, the name of a property.
  const clientIds = ['studio-1', '__proto__', '"><img src=x onerror=alert(1)>', 'a"},\n{"b', 'ü'.repeat(128)]
  for (const clientId of clientIds) {
    const { client } = await connect(t, hub, login, { clientId })
    for (const [topic, event, expected] of [
      [`inbox/${institution}`, playing(livestream), { outcome: 'published' }],
      [`inbox/${institution}/check`, playing(livestream), { outcome: 'published', dryRun: true }],
      [`inbox/${institution}`, { event: 'now' }, { outcome: 'invalid' }],
      [`inbox/${institution}`, playing(station(1, 0)), { outcome: 'blocked' }],
      ['radio/any', playing(livestream), { errors: [{ errorCode: 'topic.denied' }] }],
      ['a.b', playing(livestream), { errors: [{ errorCode: 'topic.invalid' }] }],
    ] as const) {
      const seen = watcher.received.all.length
      await client.publishAsync(topic, JSON.stringify(event), { qos: 1 })
      const { json } = await watcher.received.until(() => true, seen)
      t.match(json, expected)
      t.equal(json.clientId, clientId, `${topic}: ${JSON.stringify(json.errors)}`)
    }
  }
})

t.test('the report on a will names the client that left it', async (t) => {
  const hub = await startTestHub(t)
  const login = await hub.publisher([institution])
  const watcher = await connectPublisher(t, hub, login, institution)
  const will = { topic: `inbox/${institution}`, payload: Buffer.from('{}'), qos: 1 as const, retain: false }
  const { client } = await connect(t, hub, login, { clientId: 'studio-1', will })
  client.stream.destroy()
  const { json } = await watcher.received.until(() => true)
  t.match(json, { outcome: 'invalid', clientId: 'studio-1' })
})

t.test('the report on an event over HTTPS names no client', async (t) => {
  const hub = await startTestHub(t)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, institution)
  const body = playing(livestream)
  await api.call('POST', `/events/${body.event}`, { token, body })
  const { json } = await api.call('POST', `/events/${body.event}`, { token, body })
  const kept = await api.call('GET', `/events/${Object(json.event).id}`, { token })
  t.match(kept.json, { report: { outcome: 'published', clientId: null } })
})

t.test('who publishes into the inbox of another institution tells only its own', async (t) => {
  const hub = await startTestHub(t)
  const other = station(1, 0)
  const ours = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const foreign = other.institution.id
  const theirs = await connectPublisher(t, hub, await hub.publisher([foreign]), foreign)
  await ours.client.publishAsync(`inbox/${foreign}`, JSON.stringify(playing(other)), { qos: 1 })
  t.match((await ours.received.until(() => true)).json, { outcome: 'blocked' })
  await theirs.publish(playing(other))
  t.match(
    theirs.received.all.map(({ json }) => json.outcome),
    ['published'],
  )
})
