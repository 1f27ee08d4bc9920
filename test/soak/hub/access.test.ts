import { type Arrived, connect, connectPublisher } from '../../clients.ts'
import { control, controlTopic, data, playing, playingTopic, station } from '../../events.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'
import { between, words } from '../../words.ts'

const own = station(0, 0)
const foreign = station(1, 0)
const ownInstitution = own.institution.id
const foreignInstitution = foreign.institution.id

const radioFilters = [
  playingTopic(own),
  controlTopic(own),
  playingTopic(foreign),
  ...words(`
    radio/# radio/+/track/playing radio/+/track/+ radio/+/track/# radio/+/control radio/+/data radio/+/+
    radio/+/# radio/${own.id}/# radio/${own.id}/track/+ radio/${foreign.id}/#
  `),
]
const otherFilters = [
  '$SYS/#',
  '$SYS/+/new/clients',
  '$share/group/radio/#',
  `$share/group/${playingTopic(own)}`,
  ...between(`
    # | +/# | + | +/+ | /# | radio | radio/ | feedback/# | feedback/+ | feedback/${ownInstitution} |
    feedback/${ownInstitution}/# | feedback/${foreignInstitution} | inbox/# | inbox/+ | inbox/${ownInstitution} |
    inbox/${foreignInstitution} | +/${ownInstitution} | plugins/# | radio.# | radio/a b
  `),
]

/** The filters that the hub grants each principal. It refuses all others. */
const principals: { name: string; filters?: string[]; institutions?: string[]; granted: string[] }[] = [
  { name: 'subscriber of everything', filters: ['radio/#'], granted: [...radioFilters, 'radio'] },
  {
    name: 'subscriber of one livestream',
    filters: [`radio/${own.id}/#`],
    granted: [`radio/${own.id}/#`, `radio/${own.id}/track/+`, playingTopic(own), controlTopic(own)],
  },
  {
    name: 'subscriber of all control bits',
    filters: ['radio/+/control'],
    granted: ['radio/+/control', controlTopic(own)],
  },
  {
    name: 'subscriber of two filters that together would cover more',
    filters: ['radio/+/track/playing', 'radio/+/control'],
    granted: [
      'radio/+/track/playing',
      'radio/+/control',
      playingTopic(own),
      playingTopic(foreign),
      controlTopic(own),
    ],
  },
  { name: 'publisher', institutions: [ownInstitution], granted: [`feedback/${ownInstitution}`] },
]

onEachStore('no principal ever receives what it may not read', async (t, store) => {
  const home = await temporaryDirectory(t)
  const hub = await startTestHub(t, store, home)
  const allFilters = [...radioFilters, ...otherFilters]
  const ownPublisher = await connectPublisher(t, hub, await hub.publisher([ownInstitution]), ownInstitution)
  const foreignPublisher = await connectPublisher(
    t,
    hub,
    await hub.publisher([foreignInstitution]),
    foreignInstitution,
  )
  const publishAll = async () => {
    for (const [publisher, livestream] of [
      [ownPublisher, own],
      [foreignPublisher, foreign],
    ] as const) {
      await publisher.publish(playing(livestream))
      await publisher.publish(playing(livestream, { event: 'de.org.hub.v1.radio.track.next' }))
      await publisher.publish(control(livestream))
      await publisher.publish(data(livestream))
      await publisher.publish('broken')
    }
  }
  // Make retained values before anybody subscribes.
  await publishAll()

  const clients = await Promise.all(
    principals.map(async ({ name, filters, institutions, granted }, index) => {
      const login = institutions
        ? await hub.publisher(institutions)
        : await hub.subscriber(...(filters ?? []))
      const options = { clientId: `principal-${index}`, clean: false }
      const { client, received } = await connect(t, hub, login, options)
      for (const filter of allFilters) {
        const [answer] = await client.subscribeAsync(filter, { qos: 1 }).catch(() => [{ qos: 128 }])
        t.equal(answer?.qos === 128, !granted.includes(filter), `${name} subscribes to ${filter}`)
      }
      return { name, filters, institutions, login, options, client, received }
    }),
  )
  t.ok(principals.length * allFilters.length >= 150, `${principals.length * allFilters.length} rows`)
  await publishAll()

  const permits = (topic: string, { filters = [], institutions = [] }: (typeof principals)[number]) =>
    institutions.some((id) => topic === `feedback/${id}`) ||
    filters.some((filter) =>
      new RegExp(`^${filter.replace(/\+/g, '[^/]+').replace('/#', '(/.*)?')}$`).test(topic),
    )
  const leaks = (all: Arrived[], principal: (typeof principals)[number]) =>
    all.map(({ topic }) => topic).filter((topic) => !permits(topic, principal))
  const live: number[] = []
  for (const [index, principal] of principals.entries()) {
    const client = clients[index]
    if (!client) continue
    t.same(leaks(client.received.all, principal), [], `${principal.name}: nothing live or retained leaks`)
    t.ok(client.received.all.length > 0, `${principal.name}: but what is permitted arrives`)
    live.push(client.received.all.length)
    await client.client.endAsync()
  }

  // The restart makes the hub load the sessions from the store.
  await publishAll()
  await hub.close()
  const restarted = await startTestHub(t, store, home)
  for (const [index, principal] of principals.entries()) {
    const before = clients[index]
    if (!before) continue
    const { client, received } = await connect(t, restarted, before.login, before.options)
    await received.count(1)
    await client.publishAsync('nowhere', '', { qos: 1 })
    t.same(leaks(received.all, principal), [], `${principal.name}: nothing queued leaks`)
  }
  for (const session of await restarted.ask<{ clientId: string; subscriptions: string[] }[]>(
    'sessions.list',
  )) {
    const principal = principals[Number(session.clientId.split('-')[1])]
    if (!principal) continue
    t.same(
      session.subscriptions.toSorted(),
      principal.granted.toSorted(),
      `${principal.name}: only what was granted is stored`,
    )
  }
})

onEachStore('no principal ever publishes where it may not', async (t, store) => {
  const hub = await startTestHub(t, store)
  const app = await connect(t, hub, await hub.subscriber('radio/#'))
  await app.client.subscribeAsync('radio/#', { qos: 1 })
  const event = JSON.stringify(playing(own))
  const topics = [
    playingTopic(own),
    playingTopic(foreign),
    '$SYS/heartbeat',
    ...words(`
      radio feedback/${ownInstitution} feedback/${foreignInstitution} inbox/${foreignInstitution}
      inbox/${foreignInstitution}/track inbox/${ownInstitution}/track/playing inbox/${ownInstitution}/nonsense
      inbox Inbox/${ownInstitution} plugins/dts anything
    `),
  ]
  const publisher = await connectPublisher(t, hub, await hub.publisher([ownInstitution]), ownInstitution)
  for (const topic of topics) {
    for (const retain of [false, true]) {
      const seen = publisher.received.all.length
      await publisher.client.publishAsync(topic, event, { qos: 1, retain })
      const { json } = await publisher.received.until(() => true, seen)
      t.match(json, { outcome: 'blocked', errors: [{ errorCode: 'topic.denied' }] }, `publisher to ${topic}`)
    }
  }
  for (const topic of [
    'inbox/a.b',
    `inbox/${ownInstitution} `,
    'inbox/a\tb',
    'inbox//',
    '/',
    `${'a/'.repeat(100)}a`,
  ]) {
    const seen = publisher.received.all.length
    await publisher.client.publishAsync(topic, event, { qos: 1 })
    const { json } = await publisher.received.until(() => true, seen)
    t.match(
      json,
      { outcome: 'invalid', errors: [{ errorCode: 'topic.invalid' }] },
      `publisher to ${JSON.stringify(topic)}`,
    )
  }
  for (const topic of [...topics, `inbox/${ownInstitution}`])
    await app.client.publishAsync(topic, event, { qos: 1 })
  await app.client.publishAsync(playingTopic(own), '', { qos: 1, retain: true })
  t.ok(app.client.connected, 'denied publishes are acknowledged and dropped')

  await publisher.publish(playing(own, { title: 'allowed' }))
  await app.received.until(({ json }) => json.title === 'allowed')
  t.equal(app.received.all.length, 1, 'and reached nobody')
  t.equal((await hub.ask<unknown[]>('retained.list')).length, 1)
  await app.client.publishAsync(playingTopic(own), '', { qos: 1, retain: true })
  t.equal(
    (await hub.ask<unknown[]>('retained.list')).length,
    1,
    'nobody clears a retained value from outside',
  )
})

onEachStore('a credential limited to classes publishes only those', async (t, store) => {
  const hub = await startTestHub(t, store)
  const login = await hub.publisher([ownInstitution], ['control'])
  const publisher = await connectPublisher(t, hub, login, ownInstitution)
  const inbox = `inbox/${ownInstitution}`
  const table: [topic: string, event: Record<string, unknown>, outcome: string, code?: string][] = [
    [inbox, control(own), 'published'],
    [`${inbox}/control`, control(own), 'published'],
    [inbox, playing(own), 'blocked', 'event.class'],
    [`${inbox}/control`, playing(own), 'blocked', 'event.class'],
    [`${inbox}/track`, playing(own), 'blocked', 'topic.denied'],
  ]
  for (const [topic, event, outcome, code] of table) {
    const report = await publisher.publish(event, { topic })
    t.equal(report.outcome, outcome, topic)
    t.equal(report.errors[0]?.errorCode, code)
  }
})
