import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { MqttClient } from 'mqtt'
import { acknowledgeAll, leave } from '../../broker/session/crashing-hub.ts'
import { closed, connect, connectPublisher } from '../../clients.ts'
import { publishes, subscribe } from '../../conformance/peers.ts'
import { control, controlTopic, playing, playingTopic, station, stations } from '../../events.ts'
import { rawClient } from '../../raw-client.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore, openStoreOf } from '../../stores.ts'

const livestream = station(0, 0)
const institution = livestream.institution.id

onEachStore('a session survives a restart and gets what was published meanwhile', async (t, store) => {
  const home = await temporaryDirectory(t)
  const first = await startTestHub(t, store, home)
  const login = await first.subscriber('radio/#')
  const publisherLogin = await first.publisher([institution])
  const app = await connect(t, first, login, { clientId: 'app', clean: false })
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  await app.client.endAsync()
  const publisher = await connectPublisher(t, first, publisherLogin, institution)
  await publisher.publish(playing(livestream, { title: 'while away' }))
  await first.close()

  const second = await startTestHub(t, store, home)
  const again = await connect(t, second, login, { clientId: 'app', clean: false })
  const arrived = await again.received.until(() => true)
  t.equal(arrived.json.title, 'while away')
  t.equal(arrived.packet.retain, false)
  const live = await connectPublisher(t, second, publisherLogin, institution)
  await live.publish(playing(livestream, { title: 'back again' }))
  t.ok(
    await again.received.until(({ json }) => json.title === 'back again'),
    'the subscription is still there',
  )
})

onEachStore('an offline queue keeps control events, and the newest of each track topic', async (t, store) => {
  const hub = await startTestHub(t, { ...store, HUB_PUBLISH_RATE: '0' })
  const login = await hub.subscriber('radio/#')
  const app = await connect(t, hub, login, { clientId: 'app', clean: false })
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  await app.client.endAsync()
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const start = Date.now()
  for (let number = 0; number < 20; number++) {
    const at = new Date(start + number).toISOString()
    await publisher.publish(playing(livestream, { title: `track ${number}`, start: at }))
    await publisher.publish(control(livestream, { name: `state ${number % 2}`, time: at }))
  }
  const session = await hub.ask('sessions.show', { clientId: 'app' })
  t.match(session, { clientId: 'app', connected: false, queued: 21 })

  const again = await connect(t, hub, login, { clientId: 'app', clean: false })
  await again.received.count(21)
  const titles = again.received.all.flatMap(({ json }) => (json.title ? [json.title] : []))
  t.same(titles, ['track 19'])
})

onEachStore(
  'who subscribes again at once gets each missed control event, and the retained one',
  async (t, store) => {
    const hub = await startTestHub(t, { ...store, HUB_PUBLISH_RATE: '0' })
    const login = await hub.subscriber('radio/#')
    const ca = await readFile(hub.caPath)
    const connecting = { clientId: 'app', clean: false, ...login, password: Buffer.from(login.password) }
    const before = await rawClient(t, hub.mqttPort, ca)
    await before.connect(connecting)
    subscribe(before, 1, { [controlTopic(livestream)]: 1 })
    await before.next('suback')
    await leave(before)
    const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
    // More than twice what is in flight at once, so that most wait when the SUBSCRIBE comes.
    const names = Array.from({ length: 230 }, (_, number) => `state ${number}`)
    const start = Date.now()
    await Promise.all(
      names.map((name, number) =>
        publisher.publish(control(livestream, { name, time: new Date(start + number).toISOString() })),
      ),
    )
    const again = await rawClient(t, hub.mqttPort, ca)
    acknowledgeAll(again)
    const connack = again.connect(connecting)
    subscribe(again, 1, { [controlTopic(livestream)]: 1 })
    t.equal((await connack).sessionPresent, true)
    await again.next('publish', names.length)
    const came = publishes(again).map(({ payload, retain }) => [JSON.parse(String(payload)).name, retain])
    t.same(
      came.filter(([, retain]) => retain === false).map(([name]) => name),
      names,
    )
    t.same(
      came.filter(([, retain]) => retain === true),
      [[names.at(-1), true]],
    )
  },
)

onEachStore(
  'a rotated credential resumes the session, other permissions are refused while it exists',
  async (t, store) => {
    const hub = await startTestHub(t, store)
    const login = await hub.subscriber('radio/#')
    const app = await connect(t, hub, login, { clientId: 'app', clean: false })
    await app.client.subscribeAsync('radio/#', { qos: 1 })

    const other = await hub.subscriber(`radio/${livestream.id}/#`)
    const refused = connect(t, hub, other, { clientId: 'app', clean: false })
    await t.rejects(refused, { code: 2 }, 'a live session is not stolen')
    const kicked = connect(t, hub, other, { clientId: 'app', clean: true })
    await t.rejects(kicked, { code: 2 }, 'nor ended by a clean one')
    t.ok(app.client.connected)

    const rotated = await hub.ask<{ username: string; password: string }>('credentials.rotate', {
      username: login.username,
    })
    const gone = closed(app.client)
    const next = await connect(t, hub, rotated, { clientId: 'app', clean: false })
    await gone
    await hub.ask('credentials.revoke', { username: login.username })
    t.ok(next.client.connected, 'revoking the old credential leaves the new one alone')
    const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
    await publisher.publish(playing(livestream, { title: 'resumed' }))
    t.ok(await next.received.until(({ json }) => json.title === 'resumed'), 'without subscribing again')

    await next.client.endAsync()
    await t.rejects(connect(t, hub, other, { clientId: 'app' }), { code: 2 }, 'nor is an offline one')
    await hub.ask('sessions.drop', { clientId: 'app' })
    t.ok((await connect(t, hub, other, { clientId: 'app' })).client.connected, 'dropping it frees the id')
  },
)

onEachStore('revoking closes the connections within a second and refuses the next', async (t, store) => {
  const hub = await startTestHub(t, store)
  const other = await connect(t, hub, await hub.subscriber('radio/#'))
  // A pause of the machine lengthens some rounds, but not all of them.
  let shortest = Infinity
  for (let round = 0; round < 5 && shortest >= 1000; round++) {
    const login = await hub.subscriber('radio/#')
    const apps = await Promise.all(
      [1, 2, 3].map((number) => connect(t, hub, login, { clientId: `app-${round}-${number}` })),
    )
    const began = performance.now()
    const gone = Promise.all(apps.map(({ client }) => closed(client)))
    await hub.ask('credentials.revoke', { username: login.username })
    await gone
    shortest = Math.min(shortest, performance.now() - began)
    await t.rejects(connect(t, hub, login), { code: 4 })
  }
  t.ok(shortest < 1000, `${shortest} ms`)
  t.ok(other.client.connected, 'nobody else is touched')
})

onEachStore('a wrong or missing password is refused with 4', async (t, store) => {
  const hub = await startTestHub(t, store)
  const login = await hub.subscriber('radio/#')
  const table: [string, { username?: string; password?: string }][] = [
    ['wrong password', { ...login, password: 'wrong' }],
    ['no password', { username: login.username }],
    ['unknown user', { username: 'sub-nobody-20260101000000', password: login.password }],
    ['nothing', {}],
  ]
  for (const [why, given] of table) {
    const { username, password } = given
    const fields = { ...(username && { username }), ...(password && { password }) }
    await t.rejects(
      connect(t, hub, { username: '', password: '' }, {
        username: undefined,
        password: undefined,
        ...fields,
      } as never),
      { code: 4 },
      why,
    )
  }
})

onEachStore('a will obeys the rules of publishing', async (t, store) => {
  const hub = await startTestHub(t, store)
  const foreign = station(1, 0)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const login = await hub.publisher([institution])
  const watcher = await connectPublisher(t, hub, login, institution)
  const wills: [why: string, topic: string, event: Record<string, unknown>, outcome: string][] = [
    ['onto the radio tree', playingTopic(livestream), playing(livestream), 'blocked'],
    ['into a foreign inbox', `inbox/${foreign.institution.id}`, playing(foreign), 'blocked'],
    ['a foreign event into the own inbox', `inbox/${institution}`, playing(foreign), 'blocked'],
    ['onto a topic that cannot be', 'inbox/a.b', playing(livestream), 'invalid'],
    ['a good one', `inbox/${institution}`, playing(livestream, { title: 'off air' }), 'published'],
  ]
  for (const [why, topic, event, outcome] of wills) {
    const seen = watcher.received.all.length
    const will = { topic, payload: Buffer.from(JSON.stringify(event)), qos: 1 as const, retain: true }
    const { client } = await connect(t, hub, login, { clientId: 'with-will', will })
    client.stream.destroy()
    const { json } = await watcher.received.until(() => true, seen)
    t.equal(json.outcome, outcome, why)
  }
  const { json } = await app.received.until(() => true)
  t.equal(json.title, 'off air')
  t.equal(app.received.all.length, 1)

  const seen = watcher.received.all.length
  const will = { topic: `inbox/${institution}`, payload: Buffer.from('{}'), qos: 0 as const, retain: false }
  const polite = await connect(t, hub, login, { clientId: 'polite', will })
  await polite.client.endAsync()
  await watcher.publish(playing(livestream))
  t.equal(watcher.received.all.length, seen + 1, 'no will after DISCONNECT')
})

onEachStore('a will fires however the connection ends without DISCONNECT, and once', async (t, store) => {
  const home = await temporaryDirectory(t)
  const hub = await startTestHub(t, store, home)
  const login = await hub.publisher([institution])
  const watcher = await connectPublisher(t, hub, login, institution)
  const ends: [how: string, end: (client: MqttClient) => void][] = [
    ['closed', (client) => client.stream.end()],
    ['destroyed', (client) => client.stream.destroy()],
    ['protocol violation', (client) => client.stream.write(Buffer.of(0xf0, 0))],
    ['operator', () => void hub.ask('clients.disconnect', { clientId: 'studio' })],
  ]
  for (const [how, end] of ends) {
    const seen = watcher.received.all.length
    const payload = Buffer.from(JSON.stringify(playing(livestream, { playlistItemId: how })))
    const will = { topic: `inbox/${institution}`, payload, qos: 1 as const, retain: false }
    const { client } = await connect(t, hub, login, { clientId: 'studio', will })
    end(client)
    t.equal((await watcher.received.until(() => true, seen)).json.playlistItemId, how)
    t.equal(watcher.received.all.length, seen + 1, how)
  }
  const left: string[] = []
  await hub.close()
  const opened = await openStoreOf(store, join(home, 'data'))
  for await (const [key] of opened.range('will/')) left.push(key)
  await opened.close()
  t.same(left, [], 'no will is left for the next start')
})

onEachStore('the will of a revoked credential is void', async (t, store) => {
  const hub = await startTestHub(t, store)
  const watcher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const login = await hub.publisher([institution])
  const payload = Buffer.from(JSON.stringify(playing(livestream)))
  const will = { topic: `inbox/${institution}`, payload, qos: 1 as const, retain: false }
  const { client } = await connect(t, hub, login, { will })
  const gone = closed(client)
  await hub.ask('credentials.revoke', { username: login.username })
  await gone
  const { playlistItemId } = await watcher.publish(playing(livestream, { playlistItemId: 'afterwards' }))
  t.equal(playlistItemId, 'afterwards')
  t.equal(watcher.received.all.length, 1)
})

onEachStore('the will of a connection taken over fires, that of the new one stays', async (t, store) => {
  const hub = await startTestHub(t, store)
  const login = await hub.publisher([institution])
  const watcher = await connectPublisher(t, hub, login, institution)
  const willOf = (title: string) => ({
    topic: `inbox/${institution}`,
    payload: Buffer.from(JSON.stringify(playing(livestream, { playlistItemId: title }))),
    qos: 1 as const,
    retain: false,
  })
  await connect(t, hub, login, { clientId: 'studio', will: willOf('first') })
  const second = await connect(t, hub, login, { clientId: 'studio', will: willOf('second') })
  t.equal((await watcher.received.until(() => true)).json.playlistItemId, 'first')
  second.client.stream.destroy()
  t.equal((await watcher.received.until(() => true, 1)).json.playlistItemId, 'second')
})

onEachStore('4,000 track events leave two messages per livestream in an offline queue', async (t, store) => {
  const hub = await startTestHub(t, { ...store, HUB_PUBLISH_RATE: '0' })
  const login = await hub.subscriber('radio/#')
  const app = await connect(t, hub, login, { clientId: 'app', clean: false })
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  await app.client.endAsync()
  const livestreams = stations.flat()
  const publishers = new Map(
    await Promise.all(
      stations.map(async ([first]) => {
        const id = first?.institution.id ?? ''
        return [id, await connect(t, hub, await hub.publisher([id]))] as const
      }),
    ),
  )
  const start = Date.now() - 60_000
  const rounds = Math.ceil(4_000 / livestreams.length / 2)
  for (let round = 0; round < rounds; round++) {
    await Promise.all(
      livestreams.flatMap((of) =>
        ['playing', 'next'].map((kind) => {
          const fields = {
            event: `de.org.hub.v1.radio.track.${kind}`,
            title: `${round}`,
            start: new Date(start + round).toISOString(),
          }
          const publisher = publishers.get(of.institution.id)
          return publisher?.client.publishAsync(
            `inbox/${of.institution.id}`,
            JSON.stringify(playing(of, fields)),
            { qos: 1 },
          )
        }),
      ),
    )
  }
  const session = await hub.ask('sessions.show', { clientId: 'app' })
  t.match(session, { clientId: 'app', queued: livestreams.length * 2 })
  const again = await connect(t, hub, login, { clientId: 'app', clean: false })
  await again.received.count(livestreams.length * 2)
  t.ok(
    again.received.all.every(({ json }) => json.title === `${rounds - 1}`),
    'exactly the newest ones',
  )
  t.equal(new Set(again.received.all.map(({ topic }) => topic)).size, livestreams.length * 2)
})

onEachStore(
  'a session whose time has run out is new on every node, and after a restart',
  async (t, store, driver) => {
    const settings = { ...store, HUB_SESSION_EXPIRY: '1' }
    const hub = await startTestHub(t, settings)
    const login = await hub.subscriber('radio/#')
    const publisher = await hub.publisher([institution])
    for (const clientId of ['elsewhere', 'restarted']) {
      const app = await connect(t, hub, login, { clientId, clean: false })
      await app.client.subscribeAsync('radio/#', { qos: 1 })
      await app.client.endAsync()
    }
    const studio = await connectPublisher(t, hub, publisher, institution)
    await studio.publish(control(livestream))
    const other = driver === 'redis' ? await startTestHub(t, settings) : hub
    const ends = async () => {
      const sessions = await other.ask<{ expiresAt: string | null }[]>('sessions.list')
      return sessions.flatMap(({ expiresAt }) => (expiresAt === null ? [] : [Date.parse(expiresAt)]))
    }
    await other.until(async () => (await ends()).every((end) => end < Date.now()))
    t.equal((await ends()).length, 2, 'they have not been swept up yet')
    const isKept = async (node: typeof hub, clientId: string) => {
      const { client, received } = await connect(t, node, login, { clientId, clean: false })
      const sessions =
        await node.ask<{ clientId: string; subscriptions: string[]; queued: number }[]>('sessions.list')
      t.match(
        sessions.find((session) => session.clientId === clientId),
        { subscriptions: [], queued: 0 },
      )
      t.same(received.all, [])
      await client.endAsync()
    }
    await isKept(other, 'elsewhere')
    await hub.close()
    const restarted = await startTestHub(t, settings, hub.home)
    await isKept(restarted, 'restarted')
  },
)

onEachStore(
  'persistent sessions of a credential are bounded, counted and shown',
  async (t, store, driver) => {
    const settings = { ...store, HUB_MAX_SESSIONS_PER_CREDENTIAL: '2' }
    const hub = await startTestHub(t, settings)
    const other = driver === 'redis' ? await startTestHub(t, settings) : hub
    const login = await hub.subscriber('radio/#')
    await other.until(async () => (await other.ask<unknown[]>('credentials.list')).length === 1)
    const open = (node: typeof hub, clientId: string, clean = false) =>
      connect(t, node, login, { clientId, clean })
    const first = await open(hub, '1')
    await open(hub, '2')
    await other.until(async () => (await other.ask<unknown[]>('sessions.list')).length === 2)
    await t.rejects(open(other, '3'), { code: 3 })
    await open(other, 'clean', true)
    await first.client.endAsync()
    await open(other, '1')
    t.match(await other.ask('credentials.list'), [{ username: login.username, sessions: 2 }])
    t.match(await hub.ask('credentials.show', { username: login.username }), { sessions: 2 })
    const { counters } = await other.ask<{ counters: Record<string, number> }>('status')
    t.equal(counters['hub_connections_refused_total{reason=too-many-sessions}'], 1)
    t.match(
      other.lines.filter(({ msg }) => msg === 'too many persistent sessions of one credential'),
      [{ username: login.username, clientId: '3' }],
    )
  },
)
