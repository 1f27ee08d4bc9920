import fc from 'fast-check'
import t from 'tap'
import type { EventClass } from '../../event/kind.ts'
import { type Decision, decide, maxPayloadBytes, type Submission } from '../../validator/decide.ts'
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
    kind: {
      name: 'de.org.hub.v1.radio.track.playing',
      class: 'track',
      suffix: 'track/playing',
      timeField: 'start',
    },
    time: now - 60_000 + 250,
    livestreams: [station],
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

t.test('the livestreams come in the order of the services, one each', async (t) => {
  const [service] = playing(station).services as object[]
  const other = { ...service, externalId: 'crid://example/2' }
  const decision = decided(playing(station, { services: [other, service, service] }))
  t.match(decision, { livestreams: [{ id: livestreamOf(2).id }, { id: station.id }, { id: station.id }] })
})

t.test('size comes first, then JSON, shape, and ownership with class', async (t) => {
  // Each row also fails in all later stages.
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
  const classes = ['track', 'control', 'data'] as const
  for (const own of classes) {
    for (const topicClass of [undefined, ...classes]) {
      for (const allowedClasses of [[], ['track'], ['control', 'data'], [...classes]] as EventClass[][]) {
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
