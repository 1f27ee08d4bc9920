import t from 'tap'
import { checkShape, type ShapeOptions } from '../../event/shape.ts'

const now = Date.parse('2026-01-31T12:00:00Z')
const mqtt: ShapeOptions = { protocol: 'mqtt', now }
const playing = 'de.org.hub.v1.radio.track.playing'
const next = 'de.org.hub.v1.radio.track.next'

const service = {
  type: 'PermanentLivestream',
  externalId: 'crid://x/1',
  publisherId: 'urn:org:publisher:1',
  institutionId: 'urn:org:institution:1',
}
const legacyService = { type: 'PermanentLivestream', externalId: 'crid://x/1', publisherId: '410100' }
const track = {
  event: playing,
  type: 'music',
  start: '2026-01-31T12:00:00.5+01:00',
  length: 3,
  title: 'Title',
  playlistItemId: '1',
  services: [service],
}
const control = {
  event: 'de.org.hub.v1.radio.control',
  name: 'traffic-announcement',
  state: true,
  time: '2026-01-31T11:59:00Z',
  validUntil: '2026-01-31T12:01:00Z',
  services: [service],
}
const data = {
  event: 'de.org.hub.v1.radio.data',
  start: '2026-01-31T12:00:00Z',
  cycle: 10,
  services: [service],
}

t.test('a valid event comes back with its kind and time', async (t) => {
  t.match(checkShape(track, mqtt), {
    event: track,
    kind: { name: playing },
    time: Date.parse('2026-01-31T11:00:00.5Z'),
  })
  t.match(checkShape(data, mqtt), { event: data, kind: { class: 'data' }, time: now })
  t.match(checkShape(data, mqtt), { expires: undefined })
})

t.test('a control event is ordered by time and expires at validUntil', async (t) => {
  t.match(checkShape(control, mqtt), {
    kind: { class: 'control' },
    time: now - 60_000,
    expires: now + 60_000,
  })
})

t.test('a control state expires at the very instant of validUntil', async (t) => {
  const at = (validUntil: string) => errorsOf(checkShape({ ...control, validUntil }, mqtt))
  t.strictSame(at('2026-01-31T12:00:00.001Z'), [])
  t.strictSame(at('2026-01-31T12:00:00Z'), ['.validUntil event.expired'])
  t.strictSame(at('2026-01-31T12:30:00+01:00'), ['.validUntil event.expired'])
})

t.test('a control state that ends before it begins is refused, and the message says why', async (t) => {
  const of = (time: string, validUntil: string) => checkShape({ ...control, time, validUntil }, mqtt)
  t.strictSame(errorsOf(of('2026-01-31T12:05:00Z', '2026-01-31T12:05:00.001Z')), [])
  for (const validUntil of ['2026-01-31T12:05:00Z', '2026-01-31T13:05+01', '2026-01-31T12:01:00Z']) {
    const result = of('2026-01-31T12:05:00Z', validUntil)
    t.strictSame(errorsOf(result), ['.validUntil event.expired'], validUntil)
    const [error] = 'errors' in result ? result.errors : []
    t.equal(
      error?.message,
      `The control state would never be valid: "${validUntil}", expected later than time, "2026-01-31T12:05:00Z"`,
    )
  }
  t.strictSame(
    errorsOf(of('2026-01-31T11:59:00Z', '2026-01-31T11:58:00Z')),
    ['.validUntil event.expired'],
    'one error where it has passed as well',
  )
})

t.test('an event is ordered by all digits down to the microsecond', async (t) => {
  const timeOf = (start: string) => Object(checkShape({ ...track, start }, mqtt)).time
  t.ok(timeOf('2026-01-31T12:00:00.0001Z') < timeOf('2026-01-31T12:00:00,0002Z'))
  t.match(checkShape({ ...track, start: '2026-01-31t12:00z' }, mqtt), {
    event: { start: '2026-01-31t12:00z' },
  })
})

t.test('the topic of a service is dropped, whatever it is, and nothing else', async (t) => {
  const forged = { id: service.externalId, name: 'x', status: 'MESSAGE_SENT', messageId: '1' }
  for (const topic of [forged, null, 'x', { topic: {} }]) {
    const services = [{ ...service, more: 1, topic }, service]
    const dropped = Object(checkShape({ ...track, services }, mqtt)).event.services
    t.strictSame(dropped, [{ ...service, more: 1 }, service])
    t.ok('topic' in (services[0] ?? {}), 'what was handed in is as before')
  }
  const further = { ...control, topic: 'of the event', services: [service] }
  t.match(checkShape(further, mqtt), { event: { topic: 'of the event' } })
})

t.test('an event names at most 200 livestreams, in at most 1,000 entries', async (t) => {
  const named = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ ...service, externalId: `crid://x/${index}` }))
  const errors = (services: unknown[]) => {
    const result = checkShape({ ...track, services }, mqtt)
    return 'errors' in result
      ? result.errors.map(({ path, errorCode, message }) => `${path} ${errorCode} ${message}`)
      : []
  }
  t.strictSame(errors(named(200)), [])
  t.strictSame(errors([...named(200), ...named(200)]), [], 'the same twice counts once')
  t.strictSame(errors(Array(1000).fill(service)), [])
  t.strictSame(errors(named(201)), [
    '.services maxItems.openapi.validation The list is too long: 201 livestreams, expected at most 200',
  ])
  t.strictSame(errors(Array(1001).fill(service)), [
    '.services maxItems.openapi.validation The list is too long: 1001 entries, expected at most 1000',
  ])
  const { errors: both } = Object(checkShape({ ...track, length: 0, services: named(201) }, mqtt))
  t.equal(both.length, 2, 'beside what else is wrong')
})

t.test('over HTTPS the URL names the event, and the body may', async (t) => {
  const { event: _, ...nameless } = track
  const legacy = { ...nameless, services: [legacyService] }
  const https: ShapeOptions = { protocol: 'https', now, urlEventName: next }
  t.match(checkShape(legacy, https), { event: { ...legacy, event: next }, kind: { name: next } })
  t.match(checkShape({ ...legacy, event: next }, https), { event: { event: next }, kind: { name: next } })
  t.strictSame(errorsOf(checkShape({ ...legacy, event: playing }, https)), ['.event event.name'])
  t.strictSame(errorsOf(checkShape({ ...legacy, event: null }, https)), ['.event type.openapi.validation'])
  t.strictSame(errorsOf(checkShape({ ...legacy, event: playing, length: 0 }, https)), [
    '.event event.name',
    '.length exclusiveMinimum.openapi.validation',
  ])
  t.strictSame(errorsOf(checkShape(legacy, { ...https, urlEventName: 'toString' })), ['.event event.name'])
})

t.test('the name of a control state has at most 500 characters', async (t) => {
  t.ok('event' in checkShape({ ...control, name: 'x'.repeat(500) }, mqtt))
  t.strictSame(errorsOf(checkShape({ ...control, name: 'x'.repeat(501) }, mqtt)), [
    '.name maxLength.openapi.validation',
  ])
})

t.test('identifiers need not be URNs over HTTPS', async (t) => {
  const services = [{ ...legacyService, id: 'x', institutionId: 'y' }]
  t.strictSame(
    errorsOf(checkShape({ ...track, services }, { protocol: 'https', now, urlEventName: playing })),
    [],
  )
  t.strictSame(errorsOf(checkShape({ ...track, services }, mqtt)), [
    '.services.0.publisherId identifier.urn',
    '.services.0.institutionId identifier.urn',
    '.services.0.id identifier.urn',
  ])
})

t.test('what is no object has no shape', async (t) => {
  for (const value of [null, undefined, 1, 'x', [], [track]]) {
    t.strictSame(errorsOf(checkShape(value, mqtt)), ['. type.openapi.validation'], JSON.stringify(value))
  }
})

t.test('inherited properties are not properties of the event', async (t) => {
  t.strictSame(errorsOf(checkShape(Object.create(track), mqtt)), ['.event required.openapi.validation'])
  const services = [Object.create(service)]
  t.strictSame(errorsOf(checkShape({ ...track, services }, mqtt)), [
    '.services.0.type required.openapi.validation',
    '.services.0.externalId required.openapi.validation',
    '.services.0.publisherId required.openapi.validation',
    '.services.0.institutionId required.openapi.validation',
  ])
  const own = JSON.parse('{"constructor":1,"toString":2}')
  t.strictSame(errorsOf(checkShape({ ...track, ...own }, mqtt)), [
    '.constructor additionalProperties.openapi.validation',
    '.toString additionalProperties.openapi.validation',
  ])
})

t.test('an own __proto__ is an unknown field and pollutes nothing', async (t) => {
  const value = JSON.parse(JSON.stringify(track).replace('{', '{"__proto__":{"polluted":true},'))
  t.strictSame(errorsOf(checkShape(value, mqtt)), ['.__proto__ additionalProperties.openapi.validation'])
  t.notOk('polluted' in {})
})

t.test('the value handed in is not changed', async (t) => {
  const frozen = Object.freeze({ ...track })
  t.ok('event' in checkShape(frozen, { protocol: 'https', now, urlEventName: playing }))
})

t.test('messages name the problem of the value and what was expected', async (t) => {
  const cases: [event: object, message: RegExp][] = [
    [{ ...track, type: 'song' }, /got "song", expected one of audio, commercial, jingle/],
    [{ ...track, length: 0 }, /got 0, expected a number greater than 0/],
    [{ ...track, title: null }, /got null, expected string/],
    [{ ...track, artist: 1 }, /got 1, expected string or null/],
    [{ ...track, media: {} }, /got an object, expected array or null/],
    [{ ...track, start: '2026-02-30T12:00:00Z' }, /got "2026-02-30T12:00:00Z", expected an ISO 8601 instant/],
    [{ ...track, services: [] }, /got an array of 0, expected at least 1 item/],
    [{ ...track, album: 'x' }, /"album" is no field of TrackEvent/],
    [
      { ...track, references: [{ type: 'Show', externalId: 'x' }] },
      /got "x", expected to match \^\(c\|b\)rid/,
    ],
    [{ ...track, services: [{ ...service, type: undefined }] }, /"type" in Service/],
    [{ ...track, services: [{ ...service, publisherId: 'x' }] }, /"x", expected urn:org:publisher:<id>/],
    [{ ...track, event: 'x' }, /"x", expected one of de\.org\.hub\.v1\.radio\.track\.playing/],
    [
      { ...control, validUntil: '2020-01-01T00:00:00Z' },
      /"2020-01-01T00:00:00Z" has passed, expected later than 2026-01-31T12:00:00.000Z/,
    ],
    [{ ...track, title: ['\n'.repeat(10_000)] }, /got an array of 1, expected string/],
    [{ ...track, type: '\n'.repeat(10_000) }, /got "(\\u\{a\}){15}\\u\{a…", expected/],
  ]
  for (const [event, message] of cases) {
    const result = checkShape(JSON.parse(JSON.stringify(event)), mqtt)
    t.match('errors' in result ? result.errors.map((error) => error.message) : [], [message])
  }
})

t.test('a path names properties as they are written', async (t) => {
  const event = { ...track, references: [{ type: 'Show', externalId: 'crid://x', 'a/b~c': 1 }] }
  t.strictSame(errorsOf(checkShape(event, mqtt)), [
    '.references.0.a/b~c additionalProperties.openapi.validation',
  ])
})

t.test('at most 100 errors are listed, then one that counts the rest', async (t) => {
  const person = { name: 'x', role: 'artist' }
  const lists: [list: unknown[], first: string, rest: number][] = [
    [Array(100).fill(null), '.contributors.0', 0],
    [Array(101).fill(null), '.contributors.0', 1],
    [Array(5000).fill(null), '.contributors.0', 4900],
    [[...Array(4999).fill(person), null], '.contributors.4999', 0],
  ]
  for (const [contributors, first, rest] of lists) {
    const result = checkShape({ ...track, contributors }, mqtt)
    const errors = 'errors' in result ? result.errors : []
    const failing = contributors.filter((item) => item === null).length
    t.equal(errors.length, Math.min(failing, 100) + (rest > 0 ? 1 : 0))
    t.equal(errors[0]?.path, first)
    if (rest > 0) t.match(errors.at(-1), { path: '.', message: `Not listed: at least ${rest} more errors` })
  }
  const unknown = Object.fromEntries(Array.from({ length: 1500 }, (_, index) => [`k${index}`, 1]))
  const result = checkShape({ ...track, ...unknown }, mqtt)
  t.match('errors' in result && result.errors.at(-1)?.message, 'Not listed: at least 1400 more errors')
})

t.test('a hostile event of 400 kB is answered quickly', async (t) => {
  const events: Record<string, object> = {
    'empty services': { ...track, services: Array(136_000).fill({}) },
    'services that are numbers': { ...track, services: Array(200_000).fill(1) },
    'empty contributors': { ...track, contributors: Array(136_000).fill({}) },
    'a long URI': {
      ...track,
      references: [{ type: 'Show', externalId: 'crid://x', url: `a://${'1.'.repeat(190_000)}%` }],
    },
    'a long timestamp': { ...track, start: `2026-01-31T12:00:00.${'1'.repeat(390_000)}` },
    'a long URN': {
      ...track,
      services: [{ ...service, publisherId: `urn:org:publisher:${'a-'.repeat(190_000)}!` }],
    },
  }
  for (const [name, event] of Object.entries(events)) {
    // Quadratic work would run into the time limit of the test.
    const errors = errorsOf(checkShape(event, mqtt))
    t.ok(errors.length > 0 && errors.length <= 101, `${name}: ${errors.length} errors`)
  }
})

function errorsOf(result: ReturnType<typeof checkShape>): string[] {
  return 'errors' in result ? result.errors.map((error) => `${error.path} ${error.errorCode}`) : []
}
