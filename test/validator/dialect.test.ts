import t from 'tap'
import { readDialect } from '../../validator/dialect.ts'
import { control, data, playing, serviceOf } from '../events.ts'
import { feedOf, item, livestreamOf } from './feeds.ts'

const institutionId = 'urn:org:institution:1'
const feed = feedOf(item(1), item(2), item(3, 2))
const [station, foreign] = [livestreamOf(1), livestreamOf(3, 2)]
const { type, externalId } = station
const { type: _type, externalId: _externalId, ...ids } = serviceOf(station)
const byId = { ...ids, id: station.id }
const around = { dialects: 'all', feed, institutionId } as const

const read = (event: object, more: object = {}) => {
  const sent = JSON.parse(JSON.stringify(event))
  const result = readDialect(sent, { ...around, ...more })
  t.strictSame(sent, JSON.parse(JSON.stringify(event)), 'what was sent stays as it is')
  return result
}
const codes = ({ warnings }: ReturnType<typeof readDialect>) =>
  warnings.map(({ path, errorCode }) => `${path} ${errorCode}`)

t.test('an event in the document’s form comes out as the same object, without a warning', async (t) => {
  for (const event of [playing(station), control(station), data(station)]) {
    const { event: out, ...rest } = readDialect(event, around)
    t.equal(out, event)
    t.strictSame(rest, { creator: undefined, isCompletedFromFeed: false, warnings: [], errors: [] })
  }
})

t.test('with HUB_DIALECTS=document nothing is read', async (t) => {
  const event = playing(station, { services: [byId], creator: 'x', created: 'y' })
  t.equal(readDialect(event, { ...around, dialects: 'document' }).event, event)
})

t.test('what is no event, or has no known name, is left to the check of its shape', async (t) => {
  for (const value of [null, 7, 'x', [], {}, { event: 7, creator: 'x' }, { event: 'toString', created: 1 }]) {
    t.equal(readDialect(value, around).event, value)
  }
})

t.test('a service with an id is completed from the feed', async (t) => {
  const whole = { ...byId, type, externalId }
  for (const [sent, missing] of [
    [byId, ['type', 'externalId']],
    [{ ...byId, type }, ['externalId']],
    [{ ...byId, externalId }, ['type']],
  ] as const) {
    const result = read(playing(station, { services: [sent] }))
    t.match(result, { event: { services: [whole] }, isCompletedFromFeed: true, errors: [] })
    t.same(
      codes(result),
      missing.map((field) => `.services.0.${field} dialect.service`),
    )
  }
  const { event } = read(playing(station, { services: [{ ...byId, externalId: 'crid://other/1' }] }))
  t.match(event, { services: [{ externalId: 'crid://other/1' }] }, 'what was sent is not replaced')
})

t.test('where the feed has no type that an event may have, the id tells it', async (t) => {
  const kinds = [
    ['permanent-livestream', 'PermanentLivestream'],
    ['livestream', 'Livestream'],
    ['event-livestream', 'Event'],
  ] as const
  for (const [kind, expected] of kinds) {
    for (const listed of ['', 'Radio', 'EventLivestream']) {
      const id = `urn:org:${kind}:9`
      const own = feedOf({ ...item(1), id, type: listed })
      const result = read(playing(station, { services: [{ ...byId, id }] }), { feed: own })
      const type = listed === 'EventLivestream' ? 'Event' : expected
      t.match(result, { event: { services: [{ id, type }] }, errors: [] }, `${kind}, ${listed}`)
    }
  }
})

t.test('the type is compared only where the external id is missing', async (t) => {
  const wrong = { ...byId, type: 'Livestream' }
  t.match(read(playing(station, { services: [wrong] })).errors, [
    { path: '.services.0.type', errorCode: 'service.ambiguous' },
  ])
  t.same(read(playing(station, { services: [{ ...wrong, externalId }] })).errors, [])
  t.same(read(playing(station, { services: [{ ...wrong, type: 'Radio' }] })).errors, [], 'the schema says it')
})

t.test('a service that cannot be completed is refused as its owner would be', async (t) => {
  const unknown = 'urn:org:permanent-livestream:unknown'
  t.match(read(playing(station, { services: [{ ...byId, id: unknown }] })).errors, [
    { path: '.services.0.id', errorCode: 'service.unknown' },
  ])
  t.match(read(playing(station, { services: [byId] }), { feed: undefined }).errors, [
    { path: '.', errorCode: 'feed.unavailable' },
  ])
  t.same(read(playing(station, { services: [{ ...byId, id: 'swr3' }] })).errors, [], 'the shape says it')
})

t.test('nothing is told of a livestream of another institution', async (t) => {
  const { id } = foreign
  const sent = { ...byId, id, type: 'Livestream' }
  t.same(read(playing(station, { services: [sent] })).errors, [], 'the check of the ownership refuses it')
})

t.test('types and roles have other names', async (t) => {
  const services = [{ ...serviceOf(station), type: 'EventLivestream' }]
  const contributors = ['leader', 'choir', 'artist', 'choirleader', 7].map((role) => ({ name: 'x', role }))
  const result = read(playing(station, { services, contributors }))
  t.match(result.event, {
    services: [{ type: 'Event' }],
    contributors: ['choirleader', 'ensemble', 'artist', 'choirleader', 7].map((role) => ({ role })),
  })
  t.same(codes(result), [
    '.services.0.type dialect.type',
    '.contributors.0.role dialect.role',
    '.contributors.1.role dialect.role',
  ])
})

t.test('creator is kept beside the event, as a short text, and no warning repeats it', async (t) => {
  for (const [creator, kept] of [
    ['mira@studio.example', 'mira@studio.example'],
    [{ name: 'Mira' }, '{"name":"Mira"}'],
    [null, undefined],
    ['', ''],
    ['x'.repeat(1_000), 'x'.repeat(500)],
  ] as const) {
    for (const event of [playing(station), control(station), data(station)]) {
      const result = read({ ...event, creator })
      t.strictSame(result.event, event)
      t.equal(result.creator, kept)
      t.same(codes(result), ['.creator dialect.creator'])
      t.notMatch(JSON.stringify(result.warnings), /mira/i)
    }
  }
})

t.test('received fields are dropped from track events, and created from all', async (t) => {
  const received = { name: 'x', topic: { id: 'y' }, blocked: false, created: '2026-01-31T12:00:00Z' }
  const result = read(playing(station, { ...received, services: [{ ...serviceOf(station), blocked: 'no' }] }))
  t.strictSame(result.event, { ...playing(station), start: Object(result.event).start })
  t.same(codes(result).toSorted(), [
    ...['.blocked', '.created', '.name', '.services.0.blocked', '.topic'].map(
      (path) => `${path} dialect.dropped`,
    ),
  ])
  for (const event of [control(station), data(station)]) {
    const { name = 'further' } = event
    const result = read({ ...event, ...received, name })
    t.strictSame(result.event, { ...event, name, topic: { id: 'y' }, blocked: false }, 'further fields stay')
    t.same(codes(result), ['.created dialect.dropped'])
  }
})

t.test('start of a control event counts where time is absent', async (t) => {
  const { time, ...rest } = control(station)
  const result = read({ ...rest, start: time })
  t.strictSame(result.event, { ...rest, time })
  t.same(codes(result), ['.time dialect.time'])
  const both = control(station, { start: '2020-01-01T00:00:00Z' })
  t.equal(readDialect(both, around).event, both, 'with both it is a further field')
})

t.test('a control state without an end lasts twelve hours', async (t) => {
  const { validUntil: _, ...endless } = control(station, { time: '2026-01-31T12:00:00.25+01:00' })
  const result = read(endless)
  t.match(result.event, { validUntil: '2026-01-31T23:00:00.250Z' })
  t.same(codes(result), ['.validUntil dialect.validUntil'])
  for (const time of ['9999-12-31T13:00:00Z', 'soon', 7, undefined]) {
    t.notOk(Object.hasOwn(Object(read({ ...endless, time }).event), 'validUntil'), `none for ${time}`)
  }
})

t.test('names that every object inherits are no fields', async (t) => {
  const event = { event: 'de.org.hub.v1.radio.control', services: [{ id: station.id }] }
  t.match(read(event).event, { services: [{ type: station.type }] })
  t.strictSame(read({ ...event, services: [], constructor: 1 }).warnings, [])
})

t.test('warnings are bounded, like errors', async (t) => {
  const services = Array.from({ length: 1_000 }, () => byId)
  const { warnings, event } = read(playing(station, { services }))
  t.equal(warnings.length, 101)
  t.match(warnings.at(-1), {
    message: /^Not listed: at least 1900 more warnings$/,
    errorCode: 'dialect.service',
  })
  t.match(event, { services: Array.from({ length: 1_000 }, () => ({ type })) })
  const more = playing(station, { services: [...services, byId] })
  t.equal(readDialect(more, around).event, more, 'too many services are left to the shape')
})
