import t from 'tap'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { playing, station } from '../../events.ts'
import { startTestHub } from '../../start-hub.ts'

const livestream = station(0, 0)
const institution = livestream.institution.id
const creator = 'mira.hollund@studio.example'

t.test(
  'the creator of an event is shown to operators and to its institution, and to nobody else',
  async (t) => {
    const hub = await startTestHub(t)
    const api = await openApi(t, hub)
    const { token } = await addUser(hub, api, institution)
    const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
    const app = await connect(t, hub, await hub.subscriber('radio/#'))
    await app.client.subscribeAsync('radio/#', { qos: 1 })

    const published = await publisher.publish(playing(livestream, { creator }))
    t.match(published, {
      outcome: 'published',
      warnings: [{ path: '.creator', errorCode: 'dialect.creator' }],
    })
    const refused = await publisher.publish(playing(livestream, { creator, title: 7 }))
    t.match(refused, { outcome: 'invalid', warnings: undefined })

    const shown = await hub.ask('events.show', { id: published.id })
    t.match(shown, { creator, published: { title: 'Morgenlicht' } })
    const asked = await api.call('GET', `/events/${published.id}`, { token })
    t.match(asked.json, { creator, event: { title: 'Morgenlicht' } })
    const [{ position } = { position: 0 }] = (
      await hub.ask<{ events: { position: number }[] }>('events.list', { institution, outcome: 'invalid' })
    ).events
    t.match(await hub.ask('events.show', { id: String(position) }), { creator })

    const arrived = await app.received.until(() => true)
    const [history, metrics] = await Promise.all([
      api.call('GET', `/livestreams/${livestream.id}/events`, { token }),
      api.raw('GET', '/metrics'),
    ])
    const told = { published, refused, arrived: arrived.json, history: history.json, metrics: metrics.text }
    for (const [where, text] of Object.entries({ ...told, log: hub.lines })) {
      t.notMatch(JSON.stringify(text), creator, where)
    }
    const { report, published: event } = shown as { report: object; published: object }
    t.notMatch(JSON.stringify({ report, event }), creator)
  },
)
