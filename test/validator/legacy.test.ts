import pino from 'pino'
import t, { type Test } from 'tap'
import type { Message } from '../../event/message.ts'
import type { Service } from '../../event/schema.ts'
import { commitTogether } from '../../store/commit-together.ts'
import { ConditionFailed } from '../../store/store.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createLegacy } from '../../validator/legacy.ts'
import { createStoring } from '../../validator/pipeline.ts'
import { createRepetitions } from '../../validator/repetitions.ts'
import type { WorkPlanner } from '../../validator/settlement.ts'
import { createTopics } from '../../validator/topics.ts'
import { playing, serviceOf } from '../events.ts'
import { openStore } from '../open-store.ts'
import { createSharedSpace, type TestStore } from '../shared-store.ts'
import { feedOf, item, livestreamOf } from './feeds.ts'
import { warningsCounted } from './warnings-counted.ts'

const eventName = 'de.org.hub.v1.radio.track.playing'
const institutionId = 'urn:org:institution:1'
const [one, foreign] = [livestreamOf(1), livestreamOf(3, 2)]
const feed = feedOf(item(1), item(2), item(3, 2))

const service = (fields: Partial<Service> = {}): Service => ({
  type: 'PermanentLivestream',
  externalId: one.externalId,
  publisherId: one.publisher.id,
  ...fields,
})

async function startLegacy(t: Test, hasFeed = true, shared?: TestStore) {
  let ids = 17
  const metrics = createMetrics()
  const store = shared ?? (await openStore(t))
  const distributed: Message[] = []
  const lines: Record<string, unknown>[] = []
  /** The number of livestreams that each event was charged for. */
  const charged: number[] = []
  let failure: Error | undefined
  let meanwhile: (() => Promise<unknown>) | undefined
  const topics = await createTopics(store)
  /** For each event that went out, whether it was planned as a repetition of one that had gone out whole. */
  const repeatedWhole: boolean[] = []
  const work: WorkPlanner = {
    withWebhooks: new Set(),
    isForAll: true,
    pluginTargets: new Set(),
    plan(_accepted, { isRepeatedWhole }) {
      repeatedWhole.push(isRepeatedWhole)
      return []
    },
  }
  const publishLegacy = createLegacy({
    feed: { inUse: hasFeed ? { feed } : undefined },
    former: feedOf(item(9, 2)),
    topics,
    repetitions: await createRepetitions({ store, clock: Date.now }),
    store: createStoring({
      fanout: {
        async distribute(messages, others) {
          const failing = failure && Promise.reject(failure)
          if (meanwhile) {
            failing?.catch(() => undefined)
            failure = undefined
            await meanwhile()
            meanwhile = undefined
          }
          await commitTogether(failing ? { commit: () => failing } : store, others)
          distributed.push(...messages.filter(({ isReport }) => !isReport))
        },
      },
      work,
    }),
    work,
    nextEventId: () => String(ids++),
    clock: Date.now,
    log: pino({}, { write: (line: string) => lines.push(JSON.parse(line)) }),
    metrics,
  })
  shared?.start()
  return {
    store,
    distributed,
    lines,
    counters: metrics.snapshot,
    metrics,
    fail: (error: Error | undefined) => {
      failure = error
    },
    /** The next commit fails, and something else is stored before. */
    failOnce: (error: Error, before: () => Promise<unknown>) => {
      failure = error
      meanwhile = before
    },
    charged,
    repeatedWhole,
    publish: (event: object) => publish(event, false),
    dryRun: (event: object) => publish(event, true),
  }

  function publish(event: object, dryRun: boolean) {
    const request = { payload: Buffer.from(JSON.stringify(event)), eventName, institutionId, dryRun }
    const arrival = { at: Date.now(), started: performance.now(), clientId: null }
    return publishLegacy(request, arrival, (_, livestreams) => charged.push(livestreams))
  }
}

t.test('the first event of a livestream creates its topic, the second is published', async (t) => {
  const { publish, distributed, store, counters } = await startLegacy(t)
  const event = playing(one)
  const first = await publish(event)
  t.match(first, {
    outcome: 'accepted',
    statuses: { published: 0, blocked: 0, failed: 1 },
    event: {
      id: '17',
      services: [{ id: one.id, topic: { id: one.id, status: 'TOPIC_CREATED', messageId: null } }],
    },
  })
  t.same(distributed, [])
  const outcomes = async () =>
    Object.entries(await counters())
      .filter(([name, count]) => name.startsWith('hub_events_total') && count > 0)
      .map(([name]) => name)
  t.same(await outcomes(), ['hub_events_total{outcome=topic-created}'], 'nobody was refused')
  const second = await publish(event)
  t.match(second, {
    statuses: { published: 1, blocked: 0, failed: 0 },
    event: { services: [{ topic: { status: 'MESSAGE_SENT', messageId: '17' } }] },
  })
  t.equal(distributed.length, 1)
  t.equal((await createTopics(store)).stored.get(one.id)?.id, one.id, 'the topic survives a restart')
})

t.test('a value that stays in memory keeps no other bytes there', async (t) => {
  const { publish, distributed } = await startLegacy(t)
  for (const title of ['first', 'second']) await publish(playing(one, { title }))
  const { payload } = distributed[0] ?? {}
  t.ok(payload)
  t.equal(payload?.buffer.byteLength, payload?.length)
})

for (const when of ['before the event comes', 'while the event is being stored'] as const) {
  t.test(`an event is published for a topic that another node makes ${when}`, async (t) => {
    const space = createSharedSpace()
    const [here, other] = [space.openFollowed(t), space.open()]
    const { publish, failOnce, distributed } = await startLegacy(t, true, here)
    const value = JSON.stringify({ id: one.id, createdAt: '2026-01-31T12:00:00.000Z' })
    const make = () => other.commit([{ put: `topic/${one.id}`, value }])
    here.lag()
    if (when === 'before the event comes') await make()
    else {
      failOnce(new ConditionFailed('work-seen/another/node/was/first'), async () => {
        await make()
        await here.catchUp()
      })
    }
    const published = publish(playing(one))
    here.restore()
    t.match(await published, { statuses: { published: 1, failed: 0 } })
    t.equal(distributed.length, 1)
  })
}

t.test('an event that went out in part is no repetition for the webhooks of the rest', async (t) => {
  const { publish, repeatedWhole } = await startLegacy(t)
  await publish(playing(one))
  const both = playing(one, { services: [service(), serviceOf(livestreamOf(2))] })
  t.match(await publish(both), { statuses: { published: 1, failed: 1 } })
  t.match(await publish(both), { statuses: { published: 2 } })
  const whole = playing(one, { title: 'Whole' })
  for (const event of [whole, whole]) await publish(event)
  t.same(repeatedWhole, [false, false, false, true])
})

t.test('each service has its own verdict, and what is blocked does not go out with the others', async (t) => {
  const { publish, distributed } = await startLegacy(t)
  await publish(playing(one))
  const services = [
    service(),
    service({ externalId: 'crid://example/2' }),
    service({ externalId: foreign.externalId }),
  ]
  const result = await publish(playing(one, { services }))
  t.match(result, { statuses: { published: 1, blocked: 1, failed: 1 } })
  t.equal(distributed.length, 1)
  t.match(JSON.parse(`${distributed[0]?.payload}`), { services: [{ id: one.id }] })
  t.equal(JSON.parse(`${distributed[0]?.payload}`).services.length, 1)
})

t.test('a blocked service is not on the air of a livestream whose id it claims', async (t) => {
  const { publish, distributed } = await startLegacy(t)
  await publish(playing(one))
  const claims = [foreign.externalId, 'crid://example/9'].map((externalId) =>
    service({ externalId, publisherId: 'urn:org:publisher:9', id: one.id }),
  )
  const result = await publish(playing(one, { services: [service(), ...claims] }))
  t.match(result, { statuses: { published: 1, blocked: 2, failed: 0 } })
  const { services } = Object(Object(result).event)
  t.match(services[0], { topic: { status: 'MESSAGE_SENT' } })
  for (const blocked of services.slice(1)) t.notOk('topic' in blocked)
  t.equal(JSON.parse(`${distributed.at(-1)?.payload}`).services.length, 1)
})

t.test('what did not go out is explained, service by service', async (t) => {
  const { publish } = await startLegacy(t)
  const services = [
    service(),
    service({ externalId: foreign.externalId }),
    service({ externalId: 'crid://example/9' }),
  ]
  t.match(await publish(playing(one, { services })), {
    statuses: { published: 0, blocked: 2, failed: 1 },
    errors: [
      { path: '.services.0', errorCode: 'topic.created', message: /send the event again/ },
      { path: '.services.1', errorCode: 'service.institution.mismatch' },
      { path: '.services.2', errorCode: 'service.institution.mismatch' },
    ],
  })
  t.same(Object(await publish(playing(one))).errors, [], 'nothing when all is well')
})

t.test('what is probably wrong is a warning, and counted once the event went out', async (t) => {
  const { publish, dryRun, metrics } = await startLegacy(t)
  const event = playing(one, { isrc: 'unknown' })
  const warnings = [{ path: '.isrc', errorCode: 'isrc.form' }]
  const dry = await dryRun(event)
  t.match(dry, { warnings: [{ path: '.services.0', errorCode: 'topic.created' }, ...warnings] })
  t.match(await publish(event), { statuses: { failed: 1 }, warnings })
  t.same(await warningsCounted(metrics), [], 'it only made the topic')
  t.match(await publish(event), { statuses: { published: 1 }, errors: [], warnings })
  t.same(await warningsCounted(metrics), [[institutionId, 'isrc.form', 1]])
  t.same(Object(await publish(playing(one))).warnings, [])
  const blocked = await publish({ ...event, services: [service({ externalId: foreign.externalId })] })
  t.match(blocked, { statuses: { blocked: 1 }, warnings: [] }, 'the errors come first')
})

t.test('a service that is named twice counts once', async (t) => {
  const { publish } = await startLegacy(t)
  const wrong = service({ publisherId: 'nobody' })
  for (const [services, statuses] of [
    [[wrong, wrong], { blocked: 1, failed: 0 }],
    [[wrong, { ...wrong, id: one.id }], { blocked: 1, failed: 0 }],
    [[service(), service(), wrong], { blocked: 1, failed: 1 }],
    [[service(), service()], { published: 1, blocked: 0 }],
  ] as const) {
    t.match(await publish(playing(one, { services })), { statuses })
  }
})

t.test('without a feed nothing is judged, and it is counted', async (t) => {
  const { publish, counters, store } = await startLegacy(t, false)
  t.same(await publish(playing(one)), { outcome: 'unavailable' })
  t.match(await publish({}), { outcome: 'invalid' }, 'what can never be accepted is told all the same')
  t.match(await counters(), {
    'hub_events_total{outcome=blocked}': 1,
    'hub_event_errors_total{code=feed.unavailable}': 1,
  })
  t.equal((await createTopics(store)).stored.size, 0)
})

t.test('a large event does not go to any number of livestreams', async (t) => {
  const { publish, distributed, store } = await startLegacy(t)
  const toMany = (count: number) =>
    playing(one, {
      title: 'x'.repeat(400_000),
      services: Array.from({ length: count }, (_, n) => service({ externalId: `crid://example/new-${n}` })),
    })
  t.match(await publish(toMany(21)), {
    outcome: 'invalid',
    errors: [{ path: '.services', errorCode: 'payload.size', message: /21 livestreams/ }],
  })
  t.equal((await createTopics(store)).stored.size, 0, 'nor are their topics made')
  t.match(await publish(toMany(20)), { statuses: { failed: 20 } })
  t.match(await publish(toMany(20)), { statuses: { published: 20 } })
  t.equal(distributed.length, 20)
})

t.test(
  'an event is charged for the livestreams that it names, also for those of blocked services',
  async (t) => {
    const { publish, charged } = await startLegacy(t)
    const services = Array.from({ length: 30 }, (_, n) =>
      service({ externalId: `crid://example/new-${n % 10}`, id: 'wrong' }),
    )
    await publish(playing(one, { services }))
    await publish({})
    t.same(charged, [10, 0])
  },
)

t.test('what is refused as a whole is in the log, with the first reason', async (t) => {
  const { publish, lines } = await startLegacy(t)
  await publish({})
  const first = { msg: 'event refused', outcome: 'invalid', event: eventName, institutions: [institutionId] }
  t.match(lines, [{ ...first, error: { errorCode: /validation$/ } }])
})

t.test('what is blocked is in the log, with the reason', async (t) => {
  const { publish, lines } = await startLegacy(t)
  await publish(playing(one, { services: [service({ publisherId: 'nobody' }), service()] }))
  t.match(lines, [
    {
      msg: 'event refused',
      outcome: 'blocked',
      event: eventName,
      institutions: [institutionId],
      services: [one.externalId],
      error: { errorCode: 'service.publisher.mismatch' },
    },
  ])
})

t.test(
  'an invalid event is explained, one that cannot be stored has failed and creates nothing',
  async (t) => {
    const { publish, fail } = await startLegacy(t)
    t.match(await publish({}), { outcome: 'invalid' })
    t.match(await publish(playing(one, { event: 'de.org.hub.v1.radio.track.next' })), {
      outcome: 'invalid',
      errors: [{ path: '.event', errorCode: 'event.name' }],
    })
    fail(new Error('disk full'))
    t.same(await publish(playing(one)), { outcome: 'failed' })
    fail(undefined)
    t.match(await publish(playing(one)), { statuses: { failed: 1 } }, 'the topic was not created before')
  },
)

t.test('an institution cannot fill the hub with livestreams that the feed does not know', async (t) => {
  const { publish } = await startLegacy(t)
  const made = async (from: number, count: number) => {
    const services = Array.from({ length: count }, (_, index) =>
      serviceOf({ ...one, id: '', externalId: `crid://made.example/${from + index}` }),
    ).map(({ id: _id, ...service }) => service)
    return publish({ ...playing(one), services })
  }
  for (let from = 0; from < 1_900; from += 100) await made(from, 100)
  t.match(await made(1_900, 150), { statuses: { published: 0, blocked: 50, failed: 100 } })
  t.match(await made(5_000, 1), { statuses: { blocked: 1 } })
  t.match(await made(0, 1), { statuses: { published: 1 } }, 'those it has go on')
  t.match(await publish(playing(one)), { statuses: { failed: 1 } }, 'and so does the feed')
})
