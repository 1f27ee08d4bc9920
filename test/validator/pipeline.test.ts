import { createHash } from 'node:crypto'
import pino from 'pino'
import t from 'tap'
import { errorItem } from '../../event/error.ts'
import type { Message } from '../../event/message.ts'
import { commitTogether } from '../../store/commit-together.ts'
import { storeKeys } from '../../store/keys.ts'
import { type Change, ConditionFailed } from '../../store/store.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import type { Submission } from '../../validator/decide.ts'
import { createPipeline } from '../../validator/pipeline.ts'
import type { Repetitions } from '../../validator/repetitions.ts'
import type { WorkPlanner } from '../../validator/settlement.ts'
import type { Topics } from '../../validator/topics.ts'
import { control, data, playing, serviceOf } from '../events.ts'
import { feedOf, item, livestreamOf } from './feeds.ts'
import { warningsCounted } from './warnings-counted.ts'

const institutionId = 'urn:org:institution:1'
const now = Date.parse('2026-01-31T12:00:00Z')
const [one, two, foreign] = [livestreamOf(1), livestreamOf(2), livestreamOf(3, 2)]
const controlTimes = { time: '2026-01-31T11:59:00Z', validUntil: '2026-01-31T12:05:00Z' }
const alongside: Change[] = [{ put: 'incoming/x', value: '' }]

const everyTopicExists: Topics = {
  caughtUp: async () => false,
  ids: () => [],
  stored: new Map(),
  has: () => false,
  countOf: () => 0,
  ownerOf: () => undefined,
  missing: () => () => ({ changes: [] }),
}

const everythingIsNew: Repetitions = (_fingerprint, newId) => ({
  id: newId(),
  isRepeated: false,
  isRepeatedWhole: false,
  markPublishedInPart() {},
  first: undefined,
  keepAsStored() {},
  once: () => [],
  marks: () => ({ changes: [] }),
})

const nothingToDo: WorkPlanner = {
  withWebhooks: new Set(),
  isForAll: false,
  pluginTargets: new Set(),
  plan: () => [],
}

/** A pipeline that only notes the messages that it would distribute. */
function startPipeline(
  options: {
    hasFeed?: boolean
    storeError?: Error
    repetitions?: Repetitions
    storesAgain?: boolean
    topics?: Partial<Topics>
    work?: Partial<WorkPlanner>
    payloadAt?: (position: number) => Promise<Buffer | undefined>
  } = {},
) {
  const { hasFeed = true, repetitions = everythingIsNew, storesAgain = false } = options
  let { storeError } = options
  const feed = feedOf(item(1), item(2), item(3, 2))
  const distributed: { messages: readonly Message[]; alongside: readonly Change[] | undefined }[] = []
  const announced: Message[] = []
  const lines: Record<string, unknown>[] = []
  const metrics = createMetrics()
  let ids = 0
  const pipeline = createPipeline({
    feed: { inUse: hasFeed ? { feed } : undefined },
    former: feedOf(item(9)),
    topics: { ...everyTopicExists, ...options.topics },
    repetitions,
    work: { ...nothingToDo, ...options.work },
    fanout: {
      distribute: (messages, others) =>
        commitTogether(
          {
            async commit(alongside) {
              distributed.push({ messages, alongside })
              const error = storeError
              if (storesAgain) storeError = undefined
              if (error) throw error
              return 1
            },
          },
          others,
        ),
      announce: (messages) => void announced.push(...messages),
    },
    payloadAt: options.payloadAt ?? (async () => undefined),
    dialects: 'all',
    nextEventId: () => `id-${++ids}`,
    clock: () => now,
    log: pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) }),
    metrics,
  })
  const submit = (event: object, more: Partial<Submission> = {}, started = performance.now()) =>
    pipeline.publish(
      { payload: Buffer.from(JSON.stringify(event)), institutionId, allowedClasses: [], ...more },
      { at: now, started, clientId: 'studio-1', alongside },
    )
  return { pipeline, submit, distributed, announced, lines, metrics }
}

function bodyOf(message: Message | undefined): Record<string, unknown> {
  return JSON.parse(message?.payload.toString() ?? 'null')
}

t.test(
  'an accepted event goes to the topic of its livestream and is reported, in one distribution',
  async (t) => {
    const { submit, distributed, announced } = startPipeline()
    const event = playing(one, { start: '2026-01-31T13:00:00+01:00', playlistItemId: 'item-7' })
    const report = await submit(event)
    t.strictSame(report, {
      outcome: 'published',
      statuses: { published: 1, blocked: 0, failed: 0 },
      event: 'de.org.hub.v1.radio.track.playing',
      id: 'id-1',
      playlistItemId: 'item-7',
      name: null,
      eventTime: '2026-01-31T13:00:00+01:00',
      services: [one.id],
      errors: [],
      receivedAt: '2026-01-31T12:00:00.000Z',
      clientId: 'studio-1',
      payloadHash: createHash('sha256').update(JSON.stringify(event)).digest('hex').slice(0, 16),
      trace: null,
    })
    t.equal(distributed.length, 1)
    const [{ messages, alongside: stored } = { messages: [], alongside: undefined }] = distributed
    t.same(stored, alongside, 'with the changes of the door')
    t.strictSame(
      messages.map(({ topic }) => topic),
      [`radio/${one.id}/track/playing`, `feedback/${institutionId}`],
    )
    t.strictSame(bodyOf(messages[1]), { ...report }, 'the feedback is the report')
    t.match(messages[1], { qos: 1, retained: undefined, queue: { keep: 'every' } })
    t.strictSame(announced, [])
  },
)

t.test('the event is completed and otherwise left alone', async (t) => {
  const { submit, distributed } = startPipeline()
  const service = { ...serviceOf(one), note: 'carried through' }
  const event = playing(one, {
    id: 'mine',
    services: [service],
    contributors: [{ name: 'Mira', role: 'artist', x: 1 }],
  })
  await submit(event)
  t.strictSame(bodyOf(distributed[0]?.messages[0]), {
    ...event,
    id: 'id-1',
    services: [{ ...service, id: one.id }],
  })
})

t.test('what is kept of an event, by class', async (t) => {
  const time = now - 60_000
  const start = new Date(time).toISOString()
  const until = now + 300_000
  const rows: [name: string, event: object, expected: object][] = [
    [
      'playing',
      playing(one, { start }),
      {
        topic: `radio/${one.id}/track/playing`,
        retained: { slot: '', time },
        queue: { keep: 'latest', time },
      },
    ],
    [
      'next',
      playing(one, { start, event: 'de.org.hub.v1.radio.track.next' }),
      { topic: `radio/${one.id}/track/next`, retained: { slot: '', time }, queue: { keep: 'latest', time } },
    ],
    [
      'control: one slot for every name, until it expires',
      control(one, { ...controlTimes, name: 'traffic' }),
      {
        topic: `radio/${one.id}/control`,
        retained: { slot: 'traffic', time, expires: until },
        queue: { keep: 'every', time, expires: until },
      },
    ],
    [
      'data: queued for one cycle',
      data(one, { start, cycle: 2.5 }),
      {
        topic: `radio/${one.id}/data`,
        retained: { slot: '', time },
        queue: { keep: 'latest', time, expires: now + 2500 },
      },
    ],
  ]
  for (const [name, event, expected] of rows) {
    const { submit, distributed } = startPipeline()
    await submit(event)
    const { payload, ...rules } = distributed[0]?.messages[0] ?? {}
    t.strictSame(rules, { qos: 1, stream: one.id, institutionId, ...expected }, name)
    t.ok(payload, name)
  }
})

t.test('several livestreams get the same event, each once', async (t) => {
  const { submit, distributed } = startPipeline()
  const services = [serviceOf(two), serviceOf(one), { ...serviceOf(two), id: two.id }]
  const report = await submit(playing(one, { services }))
  t.match(report, { statuses: { published: 2 }, services: [two.id, one.id] })
  const messages = distributed[0]?.messages ?? []
  t.strictSame(
    messages.map(({ topic }) => topic),
    [`radio/${two.id}/track/playing`, `radio/${one.id}/track/playing`, `feedback/${institutionId}`],
  )
  t.equal(messages[0]?.payload, messages[1]?.payload)
  t.match(bodyOf(messages[0]), { services: [{ id: two.id }, { id: one.id }, { id: two.id }] })
})

t.test('a value that stays in memory keeps no other bytes there', async (t) => {
  const { submit, distributed } = startPipeline()
  await submit(playing(one, { title: 'Straße' }))
  const { payload } = distributed[0]?.messages[0] ?? {}
  t.match(payload && JSON.parse(payload.toString()), { title: 'Straße' })
  t.equal(payload?.buffer.byteLength, payload?.length)
})

t.test('a refused event reaches nobody but the feedback', async (t) => {
  const services = [serviceOf(one), serviceOf(foreign), serviceOf(foreign)]
  const rows: [name: string, event: object, expected: object][] = [
    [
      'blocked: all services count',
      playing(one, { services }),
      {
        outcome: 'blocked',
        statuses: { published: 0, blocked: 2, failed: 0 },
        services: [one.externalId, foreign.externalId],
        errors: [
          { path: '.services.1', errorCode: 'service.institution.mismatch' },
          { path: '.services.1.institutionId', errorCode: 'service.institution.claim' },
          { path: '.services.2', errorCode: 'service.institution.mismatch' },
          { path: '.services.2.institutionId', errorCode: 'service.institution.claim' },
        ],
      },
    ],
    [
      'blocked: a livestream that is named in two ways counts once',
      playing(one, { services: [{ ...serviceOf(foreign), id: foreign.id }, serviceOf(foreign)] }),
      { outcome: 'blocked', statuses: { blocked: 1 }, services: [foreign.id] },
    ],
    [
      'invalid: none counts',
      playing(one, { length: 0 }),
      { outcome: 'invalid', statuses: { published: 0, blocked: 0, failed: 0 }, services: [one.externalId] },
    ],
    [
      'control: named, with its own time',
      control(foreign, controlTimes),
      {
        outcome: 'blocked',
        name: 'traffic-announcement',
        eventTime: controlTimes.time,
        playlistItemId: null,
      },
    ],
    [
      'what has the wrong type is not repeated',
      { event: 7, start: [], playlistItemId: {}, services: 'x', name: 'x' },
      { outcome: 'invalid', event: null, eventTime: null, playlistItemId: null, services: [], name: null },
    ],
  ]
  for (const [name, event, expected] of rows) {
    const { submit, distributed } = startPipeline()
    const report = await submit(event)
    t.match(report, { ...expected, id: null, trace: null }, name)
    t.strictSame(
      distributed.map(({ messages }) => messages.map(({ topic }) => topic)),
      [[`feedback/${institutionId}`]],
      name,
    )
    t.strictSame(bodyOf(distributed[0]?.messages[0]), { ...report }, name)
    t.same(distributed[0]?.alongside, alongside, `${name}: the decision is stored like any other`)
  }
})

t.test('without a feed events are blocked', async (t) => {
  const { submit } = startPipeline({ hasFeed: false })
  const report = await submit(playing(one, { services: [serviceOf(one), serviceOf(two)] }))
  t.match(report, {
    outcome: 'blocked',
    statuses: { blocked: 2 },
    errors: [{ errorCode: 'feed.unavailable' }],
  })
})

t.test('what could not be stored has failed, and nothing claims otherwise', async (t) => {
  const { submit, distributed, announced, metrics, lines } = startPipeline({
    storeError: new Error('disk full'),
  })
  const report = await submit(playing(one, { services: [serviceOf(one), serviceOf(two)] }))
  const expected = {
    outcome: 'failed',
    statuses: { published: 0, blocked: 0, failed: 2 },
    id: null,
    services: [one.id, two.id],
    errors: [{ path: '.', errorCode: 'service.failed' }],
  }
  t.match(report, expected)
  t.equal(distributed.length, 1, 'and no second try behind the back of the publisher')
  t.strictSame(
    announced.map(({ topic }) => topic),
    [`feedback/${institutionId}`],
  )
  t.match(bodyOf(announced[0]), expected)
  t.match(await metrics.snapshot(), { hub_store_failures_total: 1, 'hub_events_total{outcome=failed}': 1 })
  t.equal((await metrics.snapshot())['hub_events_total{outcome=published}'], 0)
  t.match(lines, [{ level: 50, err: { message: 'disk full' } }])
})

t.test('an event that another node was first with is decided again, and has its id there', async (t) => {
  const ids = ['here', 'there']
  const { submit, distributed } = startPipeline({
    repetitions: (...of) => ({ ...everythingIsNew(...of), id: ids.shift() ?? '' }),
    storeError: new ConditionFailed(`${storeKeys.workSeen.prefix}x`),
    storesAgain: true,
  })
  t.match(await submit(playing(one)), { outcome: 'published', id: 'there' })
  t.same(
    distributed.map(({ messages }) => bodyOf(messages[0]).id),
    ['here', 'there'],
  )
})

const formers: Record<string, [services: readonly string[], id: string, isSame: boolean]> = {
  'as the first was stored': [[one.id], 'first', true],
  'as it is now, if the journal has another event there': [[one.id], 'another', false],
  'as it is now, if the first was for further livestreams': [[one.id, two.id], 'first', false],
  'as it is now, if the first was for another livestream': [[two.id], 'first', false],
}

for (const [how, [services, id, isSame]] of Object.entries(formers)) {
  t.test(`a repetition that the feed completes goes out ${how}`, async (t) => {
    const former = Buffer.from(
      JSON.stringify({ id, services: services.map((id) => ({ id })), title: 'Former' }),
    )
    const planned: Buffer[] = []
    const { submit, distributed } = startPipeline({
      repetitions: (fingerprint, newId) => ({
        ...everythingIsNew(fingerprint, newId),
        id: 'first',
        isRepeated: true,
        first: { position: 7 },
      }),
      payloadAt: async (position) => (position === 7 ? former : undefined),
      work: {
        isForAll: true,
        plan({ payload }) {
          planned.push(payload)
          return []
        },
      },
    })
    await submit(playing(one))
    const messages = distributed[0]?.messages.filter(({ isReport }) => !isReport) ?? []
    t.same(
      [...messages.map(({ payload }) => payload), ...planned].map((payload) => payload.equals(former)),
      Array(messages.length + 1).fill(isSame),
      'to subscribers and to webhooks',
    )
  })
}

t.test('a livestream gets a topic with its first event, and none with the next', async (t) => {
  for (const [stored, asked] of [
    [[], [[one.id, two.id]]],
    [[one.id], [[one.id, two.id]]],
    [[one.id, two.id], []],
  ] as const) {
    const made: (readonly string[])[] = []
    const topic = (id: string) => [id, { id, createdAt: '2026-01-31T12:00:00.000Z' }] as const
    const { submit } = startPipeline({
      topics: {
        stored: new Map(stored.map(topic)),
        missing(ids) {
          made.push(ids)
          return () => ({ changes: [] })
        },
      },
    })
    await submit(playing(one, { services: [serviceOf(one), serviceOf(two)] }))
    t.same(made, asked)
  }
})

t.test('warnings belong to what was published', async (t) => {
  const start = new Date(now - 60_000).toISOString()
  const event = { ...playing(one, { start, isrc: 'unknown' }), plugins: [{ type: 'dts' }] }
  const { pipeline, submit, distributed, metrics } = startPipeline()
  const report = await submit(event)
  t.match(report, {
    outcome: 'published',
    errors: [],
    warnings: [
      { path: '.start', errorCode: 'start.clock', startBehindMs: 60_000 },
      { path: '.isrc', errorCode: 'isrc.form' },
      { path: '.plugins.0.type', errorCode: 'plugin.unknown' },
    ],
  })
  t.strictSame(bodyOf(distributed[0]?.messages[1]), { ...report }, 'the feedback has them')
  await submit({ ...event, isrc: null })
  pipeline.check({ payload: Buffer.from(JSON.stringify(event)), institutionId, allowedClasses: [] })
  t.notOk(
    'warnings' in (await submit(playing(one, { start: new Date(now).toISOString() }))),
    'there are none',
  )
  t.notOk('warnings' in (await submit({ ...event, services: [serviceOf(foreign)] })), 'it is blocked')
  const failing = startPipeline({ storeError: new Error('disk full') })
  t.notOk('warnings' in (await failing.submit(event)), 'it failed')
  t.same(await warningsCounted(metrics), [
    [institutionId, 'start.clock', 2],
    [institutionId, 'isrc.form', 1],
    [institutionId, 'plugin.unknown', 2],
  ])
  t.same(await warningsCounted(failing.metrics), [])
})

t.test('a refusal that could not be stored has failed as well', async (t) => {
  const { submit, announced } = startPipeline({ storeError: new Error('disk full') })
  const report = await submit(playing(foreign))
  t.match(report, { outcome: 'failed', statuses: { published: 0, blocked: 0, failed: 1 } })
  t.equal(announced.length, 1)
})

t.test('the door’s own refusal is reported to each of the publisher’s institutions', async (t) => {
  const { pipeline, distributed, metrics } = startPipeline()
  const payload = Buffer.from(JSON.stringify(playing(one)))
  const error = errorItem('topic.denied', 'topic', 'inbox/x')
  const institutions = [institutionId, 'urn:org:institution:2']
  const arrival = { at: now, started: performance.now(), clientId: 'studio-1', alongside }
  const report = await pipeline.refuse({ payload, error, outcome: 'blocked', institutions }, arrival)
  t.match(report, {
    outcome: 'blocked',
    statuses: { published: 0, blocked: 1, failed: 0 },
    event: 'de.org.hub.v1.radio.track.playing',
    services: [one.externalId],
    errors: [error],
    clientId: 'studio-1',
  })
  t.strictSame(
    distributed[0]?.messages.map((message) => [message.topic, bodyOf(message)]),
    institutions.map((institution) => [`feedback/${institution}`, { ...report }]),
  )
  t.same(distributed[0]?.alongside, alongside)
  t.match(await metrics.snapshot(), { 'hub_event_errors_total{code=topic.denied}': 1 })
})

t.test('a refused payload may be anything', async (t) => {
  const error = errorItem('topic.invalid', 'topic', 'a.b')
  for (const text of [
    '',
    '{',
    'null',
    '7',
    '"x"',
    '[]',
    '{"services":[null,7,{}]}',
    '\xff',
    '['.repeat(100_000),
  ]) {
    const { pipeline, distributed } = startPipeline()
    const refusal = { payload: Buffer.from(text), error, outcome: 'invalid' as const, institutions: [] }
    const report = await pipeline.refuse(refusal, { at: now, started: 0, clientId: 'studio-1', alongside })
    t.match(report, { outcome: 'invalid', event: null, services: [], errors: [error] }, text.slice(0, 20))
    t.strictSame(distributed, [{ messages: [], alongside }], 'stored even with nobody to report to')
  }
})

t.test('a dry run says what would happen and changes nothing', async (t) => {
  const { pipeline, submit, distributed, announced, metrics, lines } = startPipeline()
  const check = (event: object) =>
    pipeline.check({ payload: Buffer.from(JSON.stringify(event)), institutionId, allowedClasses: [] })
  const before = await metrics.snapshot()
  const good = playing(one, { services: [serviceOf(one), serviceOf(two)] })
  const dry = check(good)
  t.match(dry, {
    outcome: 'published',
    statuses: { published: 2 },
    id: null,
    topics: [`radio/${one.id}/track/playing`, `radio/${two.id}/track/playing`],
  })
  t.match(check(playing(foreign)), { outcome: 'blocked', topics: [] })
  t.match(check({}), { outcome: 'invalid', topics: [] })
  t.strictSame([distributed, announced, lines], [[], [], []])
  t.strictSame(await metrics.snapshot(), before)

  const { topics, ...foretold } = dry
  t.strictSame(
    { ...(await submit(good)), id: null, clientId: null },
    foretold,
    'the real thing comes to the same',
  )
})

t.test('a dry run of a door is reported, and nothing else', async (t) => {
  const { pipeline, submit, distributed, metrics, lines } = startPipeline()
  const costs: number[] = []
  const tryOut = (event: object) =>
    pipeline.dryRun(
      { payload: Buffer.from(JSON.stringify(event)), institutionId, allowedClasses: [] },
      { at: now, started: 0, clientId: 'studio-1', alongside },
      (_, livestreams) => costs.push(livestreams),
    )
  const good = playing(one, { services: [serviceOf(one), serviceOf(two)] })
  const report = await tryOut(good)
  t.match(await tryOut(playing(foreign)), { dryRun: true, outcome: 'blocked', id: null })
  t.strictSame(
    distributed.map((commit) => [commit.messages.map(({ topic }) => topic), commit.alongside]),
    [1, 2].map(() => [[`feedback/${institutionId}`], alongside]),
  )
  t.strictSame(bodyOf(distributed[0]?.messages[0]), report)
  t.strictSame(costs, [2, 0], 'it costs as much')
  t.match(await metrics.snapshot(), { 'hub_events_total{outcome=dry-run}': 2 })
  t.strictSame(lines, [])
  t.strictSame(
    { ...(await submit(good)), id: null, dryRun: true },
    report,
    'the real thing comes to the same',
  )
})

t.test('outcomes and reasons are counted, refusals and late events logged', async (t) => {
  const { pipeline, submit, metrics, lines } = startPipeline()
  // Even on a busy machine, this event does not take too long.
  await submit(playing(one), {}, performance.now() + 60_000)
  await submit(playing(foreign))
  await submit({})
  t.match(await metrics.snapshot(), {
    'hub_events_total{outcome=published}': 1,
    'hub_events_total{outcome=blocked}': 1,
    'hub_events_total{outcome=invalid}': 1,
    'hub_event_errors_total{code=service.institution.mismatch}': 1,
    'hub_event_errors_total{code=required.openapi.validation}': 1,
  })
  t.equal(metrics.latency.summary().count, 1, 'only what was published has a budget')
  t.match(lines, [
    { level: 30, outcome: 'blocked' },
    { level: 30, outcome: 'invalid' },
  ])
  const payload = Buffer.from(JSON.stringify(playing(one)))
  const started = performance.now() - 221
  await pipeline.publish(
    { payload, institutionId, allowedClasses: [] },
    { at: now, started, clientId: 'studio-1' },
  )
  t.match(lines.at(-1), { level: 40, msg: 'event took longer than 220 ms' })
  t.match(await metrics.snapshot(), { hub_budget_exceeded_total: 1 })
})
