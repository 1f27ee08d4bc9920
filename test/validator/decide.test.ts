import fc from 'fast-check'
import t from 'tap'
import { type EventClass, eventClasses, kindByName } from '../../event/kind.ts'
import type { Service } from '../../event/schema.ts'
import {
  checkOwnership,
  type Decision,
  decide,
  maxPayloadBytes,
  type Submission,
} from '../../validator/decide.ts'
import { control, data, playing } from '../events.ts'
import { feedOf, item, livestreamOf } from './feeds.ts'

const institutionId = 'urn:org:institution:1'
const now = Date.parse('2026-01-31T12:00:00Z')
const feed = feedOf(item(1), item(2), item(3, 2))
const station = livestreamOf(1)
const foreign = livestreamOf(3, 2)
const time = { time: '2026-01-31T12:59:00+01:00', validUntil: '2026-01-31T12:05:00Z' }

t.test('an acceptable event comes out with everything that follows from it', async (t) => {
  const track = playing(station, { start: '2026-01-31T12:59:00.250+01:00' })
  t.strictSame(decided(track), {
    outcome: 'published',
    event: track,
    kind: kindByName.get('de.org.hub.v1.radio.track.playing'),
    time: now - 60_000 + 250,
    expires: undefined,
    livestreams: [station],
    livestreamIds: [station.id],
    warnings: [],
    creator: undefined,
    isCompletedFromFeed: false,
  })
  t.match(decided(playing(station, { event: 'de.org.hub.v1.radio.track.next' })), {
    outcome: 'published',
    kind: { suffix: 'track/next' },
  })
  t.match(decided(control(station, time)), {
    outcome: 'published',
    kind: { class: 'control' },
    time: now - 60_000,
    expires: now + 300_000,
  })
  t.match(decided(data(station, { start: '2026-01-31T12:00:00Z' })), {
    outcome: 'published',
    kind: { class: 'data' },
    time: now,
  })
})

t.test('a large event does not go to any number of livestreams', async (t) => {
  const [service] = playing(station).services as object[]
  const services = Array.from({ length: 21 }, (_, n) => ({
    ...service,
    externalId: `crid://example/${n + 1}`,
  }))
  const large = feedOf(...services.map((_, n) => item(n + 1)))
  const outcomeOf = (count: number) => {
    const event = playing(station, { title: 'x'.repeat(400_000), services: services.slice(0, count) })
    return decide({ payload: encode(event), institutionId, allowedClasses: [] }, large, now)
  }
  t.match(outcomeOf(20), { outcome: 'published' })
  t.match(outcomeOf(21), { outcome: 'invalid', errors: [{ path: '.services', errorCode: 'payload.size' }] })
  const same = playing(station, { title: 'x'.repeat(300_000), services: Array(300).fill(service) })
  t.match(decided(same), { outcome: 'published' }, 'the same livestream counts once')
})

t.test('an event does not grow without bounds while the hub completes it', async (t) => {
  const externalId = `crid://example/${'x'.repeat(450)}`
  const long = feedOf({ ...item(1), externalId })
  const { externalId: _, type: _type, ...newer } = (playing(station).services as [Service])[0]
  const outcomeOf = (event: object) =>
    decide({ payload: encode(event), institutionId, allowedClasses: [] }, long, now)
  const entries = (count: number) => Array(count).fill({ ...newer, id: station.id })
  const text = (count: number) => 'x'.repeat(count)
  t.match(outcomeOf(playing(station, { services: entries(600) })), { outcome: 'published' })
  t.match(outcomeOf(playing(station, { services: entries(600), title: text(200_000) })), {
    outcome: 'invalid',
    errors: [{ path: '.', errorCode: 'payload.size', message: /expected at most 475136$/ }],
  })
  const written = JSON.stringify(
    data({ ...station, externalId }, { start: '2026-01-31T12:00:00Z', values: [text(330_000)] }),
  )
  const numbers = (count: number) => {
    const payload = Buffer.from(written.replace(/"\]/, `"${',1e15'.repeat(count)}]`))
    return decide({ payload, institutionId, allowedClasses: [] }, long, now)
  }
  t.match(numbers(8000), { outcome: 'published' })
  t.match(numbers(9000), { outcome: 'invalid', errors: [{ path: '.', errorCode: 'payload.size' }] })
})

t.test('the livestreams come in the order of the services, one each', async (t) => {
  const [service] = playing(station).services as object[]
  const other = { ...service, externalId: 'crid://example/2' }
  const decision = decided(playing(station, { services: [other, service, service] }))
  t.match(decision, { livestreams: [{ id: livestreamOf(2).id }, { id: station.id }, { id: station.id }] })
})

t.test('size comes first, then JSON, shape, and ownership with class', async (t) => {
  // Most rows would also fail in a later stage. So the reported codes show which stage comes first.
  const foreignTrack = playing(foreign)
  const rows: [name: string, payload: Buffer, outcome: string, codes: string[]][] = [
    ['size', Buffer.alloc(maxPayloadBytes + 1, '{'), 'invalid', ['payload.size']],
    [
      'size, also of what would parse',
      Buffer.from(`{}${' '.repeat(maxPayloadBytes)}`),
      'invalid',
      ['payload.size'],
    ],
    ['JSON', Buffer.from('{"event":'), 'invalid', ['payload.json']],
    ['JSON that is no object', Buffer.from('[]'), 'invalid', ['payload.json']],
    ['nothing at all', Buffer.alloc(0), 'invalid', ['payload.json']],
    ['the name', encode({ ...foreignTrack, event: 'de.org.hub.v1.radio.text' }), 'invalid', ['event.name']],
    [
      'shape, with all its errors',
      encode({ ...foreignTrack, length: 0, title: undefined }),
      'invalid',
      ['exclusiveMinimum.openapi.validation', 'required.openapi.validation'],
    ],
    [
      'expiry is part of the shape',
      encode(control(foreign, { ...time, validUntil: '2026-01-31T12:00:00Z' })),
      'invalid',
      ['event.expired'],
    ],
    [
      'class and ownership together',
      encode(foreignTrack),
      'blocked',
      ['event.class', 'service.institution.claim', 'service.institution.mismatch'],
    ],
  ]
  for (const [name, payload, outcome, codes] of rows) {
    const decision = decide({ payload, institutionId, topicClass: 'data', allowedClasses: [] }, feed, now)
    t.equal(decision.outcome, outcome, name)
    t.strictSame(codesOf(decision).sort(), codes, name)
  }
})

t.test('a payload of exactly the limit is read', async (t) => {
  const event = encode(playing(station))
  const payload = Buffer.concat([event, Buffer.alloc(maxPayloadBytes - event.length, ' ')])
  t.equal(maxPayloadBytes, 409_600)
  t.equal(decide({ payload, institutionId, allowedClasses: [] }, feed, now).outcome, 'published')
})

t.test('the class of the topic and of the credential', async (t) => {
  const events: Record<EventClass, object> = {
    track: playing(station),
    control: control(station, time),
    data: data(station),
  }
  for (const own of eventClasses) {
    for (const topicClass of [undefined, ...eventClasses]) {
      for (const allowedClasses of [
        [],
        ['track'],
        ['control', 'data'],
        [...eventClasses],
      ] as EventClass[][]) {
        const wrongs = [
          topicClass !== undefined && topicClass !== own,
          allowedClasses.length > 0 && !allowedClasses.includes(own),
        ].filter(Boolean)
        const decision = decided(events[own], { topicClass, allowedClasses })
        const name = `${own} on a topic for ${topicClass ?? 'all'}, allowed ${allowedClasses.join() || 'all'}`
        t.equal(decision.outcome, wrongs.length > 0 ? 'blocked' : 'published', name)
        t.strictSame(
          codesOf(decision),
          wrongs.map(() => 'event.class'),
          name,
        )
      }
    }
  }
})

t.test('without a feed events of good shape are blocked, others are invalid', async (t) => {
  const without = (event: object, topicClass?: EventClass) => {
    return decide({ payload: encode(event), institutionId, topicClass, allowedClasses: [] }, undefined, now)
  }
  t.equal(without(playing(station)).outcome, 'blocked')
  t.strictSame(codesOf(without(playing(station))), ['feed.unavailable'])
  t.strictSame(codesOf(without(playing(foreign), 'data')), ['event.class', 'feed.unavailable'])
  t.equal(without(playing(station, { title: 7 })).outcome, 'invalid')
})

t.test('what was read of a refused event is handed on for the report', async (t) => {
  const event = playing(foreign, { length: 0 })
  t.match(decided(event), { value: event })
  t.equal('value' in decided(event), true)
  const unreadable = decide({ payload: Buffer.from('{'), institutionId, allowedClasses: [] }, feed, now)
  t.match(unreadable, { value: undefined })
})

t.test('whatever comes in, there is a decision', async (t) => {
  const payloads = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    fc.jsonValue().map(encode),
    fc
      .record({ ...anythingFor(playing(station)), ...anythingFor(control(station)) }, { requiredKeys: [] })
      .map(encode),
    fc
      .record(anythingFor({ ...playing(station) }), { requiredKeys: [] })
      .map((fields) => encode(playing(station, fields))),
  )
  const isDecided = fc.property(payloads, (payload) => {
    const decision = decide({ payload, institutionId, allowedClasses: [] }, feed, now)
    return decision.outcome === 'published' || decision.errors.length > 0
  })
  t.doesNotThrow(() => fc.assert(isDecided, { numRuns: 2000 }))
})

/** For each field: its right value, or any JSON value. */
function anythingFor(event: Record<string, unknown>): Record<string, fc.Arbitrary<unknown>> {
  return Object.fromEntries(
    Object.entries(event).map(([field, value]) => [field, fc.oneof(fc.constant(value), fc.jsonValue())]),
  )
}

function decided(event: object, doorway: Partial<Submission> = {}): Decision {
  return decide({ payload: encode(event), institutionId, allowedClasses: [], ...doorway }, feed, now)
}

function encode(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}

function codesOf(decision: Decision): string[] {
  return 'errors' in decision ? decision.errors.map(({ errorCode }) => errorCode) : []
}

const A = 'urn:org:institution:1'
const B = 'urn:org:institution:2'
const id = (n: number) => `urn:org:permanent-livestream:${n}`
const crid = (n: number | string) => `crid://example/${n}`

const ownersFeed = feedOf(
  item(1),
  item(2),
  item(3, 2),
  item(4, 1, { externalId: crid('twins') }),
  item(5, 1, { externalId: crid('twins') }),
  item(6, 1, { externalId: crid('shared') }),
  item(7, 2, { externalId: crid('shared') }),
  item(8, 1, { publisher: { id: 'urn:org:publisher:8', externalId: 'p8', title: 'Publisher 8' } }),
)

function service(fields: Partial<Service> = {}): Service {
  const publisherId = 'urn:org:publisher:1'
  return { type: 'PermanentLivestream', externalId: crid(1), publisherId, institutionId: A, ...fields }
}

const { institutionId: _claim, ...unclaimed } = service()

const accepted: [name: string, services: Service[], livestreams: number[]][] = [
  ['by external id', [service()], [1]],
  ['by id and external id', [service({ id: id(1) })], [1]],
  ['without an institution, over HTTPS', [unclaimed], [1]],
  ['an external id of several, with an id', [service({ id: id(5), externalId: crid('twins') })], [5]],
  [
    'an external id that others have too, with an id',
    [service({ id: id(6), externalId: crid('shared') })],
    [6],
  ],
  [
    'another publisher of the institution',
    [service({ externalId: crid(8), publisherId: 'urn:org:publisher:8' })],
    [8],
  ],
  ['several', [service({ externalId: crid(2) }), service()], [2, 1]],
  ['the same twice', [service(), service({ id: id(1) })], [1, 1]],
  ['whatever type it claims', [service({ type: 'Event' })], [1]],
]

t.test('services of the institution resolve to their livestreams, in their order', async (t) => {
  for (const [name, services, livestreams] of accepted) {
    const resolved = checkOwnership(services, A, ownersFeed)
    t.ok('livestreams' in resolved, name)
    const ids = 'livestreams' in resolved ? resolved.livestreams.map((livestream) => livestream.id) : []
    t.strictSame(ids, livestreams.map(id), name)
  }
  t.strictSame(checkOwnership([service()], A, ownersFeed), { livestreams: [livestreamOf(1)] })
})

const refused: [name: string, services: Service[], errors: string[]][] = [
  ['unknown external id', [service({ externalId: crid(99) })], ['.services.0.externalId service.unknown']],
  ['unknown id', [service({ id: id(99) })], ['.services.0.id service.unknown']],
  ['unknown in both', [service({ id: id(99), externalId: crid(99) })], ['.services.0.id service.unknown']],
  ['an id as external id', [service({ externalId: id(1) })], ['.services.0.externalId service.unknown']],
  [
    'the name of an inherited property',
    [service({ externalId: 'constructor' })],
    ['.services.0.externalId service.unknown'],
  ],
  [
    'id and external id of two livestreams',
    [service({ id: id(1), externalId: crid(2) })],
    ['.services.0.externalId service.ambiguous'],
  ],
  [
    'a known id, an unknown external id',
    [service({ id: id(1), externalId: crid(99) })],
    ['.services.0.externalId service.ambiguous'],
  ],
  [
    'an external id of several of the institution',
    [service({ externalId: crid('twins') })],
    ['.services.0.externalId service.ambiguous'],
  ],
  [
    'an external id that others have too',
    [service({ externalId: crid('shared') })],
    ['.services.0.externalId service.ambiguous'],
  ],
  [
    'a foreign livestream',
    [service({ externalId: crid(3) })],
    ['.services.0 service.institution.mismatch', '.services.0.publisherId service.publisher.mismatch'],
  ],
  [
    'a foreign livestream by id',
    [service({ id: id(3), externalId: crid(3) })],
    ['.services.0 service.institution.mismatch', '.services.0.publisherId service.publisher.mismatch'],
  ],
  [
    'another institution claimed',
    [service({ institutionId: B })],
    ['.services.0.institutionId service.institution.claim'],
  ],
  [
    'another publisher of the institution',
    [service({ publisherId: 'urn:org:publisher:8' })],
    ['.services.0.publisherId service.publisher.mismatch'],
  ],
  [
    'a foreign publisher',
    [service({ publisherId: 'urn:org:publisher:2' })],
    ['.services.0.publisherId service.publisher.mismatch'],
  ],
  [
    'a foreign livestream as its owner would name it',
    [service({ externalId: crid(3), publisherId: 'urn:org:publisher:2', institutionId: B })],
    ['.services.0 service.institution.mismatch', '.services.0.institutionId service.institution.claim'],
  ],
  [
    'an unknown one of another institution',
    [service({ externalId: crid(99), institutionId: B })],
    ['.services.0.externalId service.unknown', '.services.0.institutionId service.institution.claim'],
  ],
  [
    'wrong publisher and wrong claim',
    [service({ publisherId: 'urn:org:publisher:2', institutionId: B })],
    [
      '.services.0.publisherId service.publisher.mismatch',
      '.services.0.institutionId service.institution.claim',
    ],
  ],
  [
    'one bad among good ones',
    [service(), service({ externalId: crid(3) }), service()],
    ['.services.1 service.institution.mismatch', '.services.1.publisherId service.publisher.mismatch'],
  ],
  [
    'several bad ones, each by its own',
    [
      service({ externalId: crid(99) }),
      service(),
      service({ externalId: crid(3) }),
      service({ institutionId: B }),
    ],
    [
      '.services.0.externalId service.unknown',
      '.services.2 service.institution.mismatch',
      '.services.2.publisherId service.publisher.mismatch',
      '.services.3.institutionId service.institution.claim',
    ],
  ],
]

t.test('everything that disagrees is reported', async (t) => {
  for (const [name, services, expected] of refused) {
    const result = checkOwnership(services, A, ownersFeed)
    const errors = 'errors' in result ? result.errors : []
    t.strictSame(
      errors.map(({ path, errorCode }) => `${path} ${errorCode}`),
      expected,
      name,
    )
  }
})

t.test('the institution of the topic decides, not that of the payload', async (t) => {
  t.match(checkOwnership([service()], B, ownersFeed), {
    errors: [{ errorCode: 'service.institution.mismatch' }, { errorCode: 'service.institution.claim' }],
  })
})

t.test('messages help with what is one’s own and give nothing away of others', async (t) => {
  const messagesOf = (service: Service) => {
    const result = checkOwnership([service], A, ownersFeed)
    return 'errors' in result ? result.errors.map(({ message }) => message).join('\n') : ''
  }
  t.match(messagesOf(service({ publisherId: 'urn:org:publisher:8' })), 'expected urn:org:publisher:1')
  t.match(messagesOf(service({ id: id(1), externalId: crid(2) })), `expected ${crid(1)}`)
  t.match(messagesOf(service({ institutionId: B })), A)

  const foreign = messagesOf(service({ id: id(3), externalId: crid(3) }))
  t.notMatch(foreign, B)
  t.notMatch(foreign, 'urn:org:publisher:2')
  t.notMatch(messagesOf(service({ id: id(3), externalId: crid(1) })), crid(3))
})

t.test(
  'a livestream of a large feed is found by both ids, however many were looked up between',
  async (t) => {
    const many = feedOf(...Array.from({ length: 10_001 }, (_, n) => item(n + 1)))
    const outcome = () => checkOwnership([service({ id: id(1), externalId: crid(1) })], A, many)
    t.match(outcome(), { livestreams: [{ id: id(1) }] })
    for await (const { id } of many.all()) many.byId.get(id)
    t.match(outcome(), { livestreams: [{ id: id(1) }] })
  },
)
