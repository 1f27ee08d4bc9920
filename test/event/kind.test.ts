import t from 'tap'
import { eventClasses, eventKinds, isEventClass, kindByName, slotOf } from '../../event/kind.ts'
import { shortName } from '../../event/kinds/class-row.ts'
import { checkShape } from '../../event/shape.ts'
import { radioLevels } from '../../event/topic.ts'
import { warningsOf } from '../../event/warnings.ts'
import { differences } from '../../validator/dialect.ts'
import { control, data, station } from '../events.ts'

const now = Date.parse('2026-01-31T12:02:00+01:00')

t.test('the example of each kind is right at each door that takes it', async (t) => {
  for (const { name, doors, timeField, example } of eventKinds) {
    for (const protocol of doors) {
      const shape = checkShape({ event: name, ...example }, { protocol, now })
      if ('errors' in shape) throw new Error(`${name}: ${JSON.stringify(shape.errors)}`)
      t.equal(shape.kind.name, name)
      t.equal(shape.time, Date.parse(String(example[timeField])), name)
      const circumstances = { ...shape, receivedAt: shape.time, pluginTargets: new Set<string>() }
      t.strictSame(warningsOf(shape.event, circumstances), [], name)
    }
  }
})

t.test('each refused example of a class is refused for what it says, and for nothing else', async (t) => {
  for (const { name, doors, example, refused } of eventKinds) {
    t.ok(refused.length > 0, name)
    for (const protocol of doors) {
      for (const { change, path, errorCode } of refused) {
        const event = JSON.parse(JSON.stringify({ event: name, ...example, ...change }))
        const shape = checkShape(event, { protocol, now })
        const errors = 'errors' in shape ? shape.errors : []
        t.strictSame(
          errors.map((error) => `${error.path} ${error.errorCode}`),
          [`${path} ${errorCode}`],
          name,
        )
      }
    }
  }
})

t.test('names and topics of kinds are told apart, by the hub and by programs of clients', async (t) => {
  for (const { name, suffix, class: cls } of eventKinds) {
    t.match(name, /^de\.org\.hub\.v1\.radio\.[a-z.]+$/)
    t.equal(suffix.split('/')[0], cls, 'a filter for the class matches the topic')
    t.not(shortName(name), name)
  }
  const lasts = eventKinds.map(({ suffix }) => suffix.split('/').at(-1))
  for (const names of [eventKinds.map(({ name }) => name), [...lasts, 'changed', 'state']])
    t.equal(new Set(names).size, names.length, `${names}`)
  t.equal(radioLevels, 4, 'docs/subscribers.md and the least HUB_MAX_TOPIC_LEVELS say so')
})

t.test('fields that a class names are fields of its events', async (t) => {
  for (const { name, schema, timeField, slotField, endField, cycleField, newerForm } of eventKinds) {
    for (const field of [timeField, slotField, endField, cycleField].filter((one) => one !== undefined))
      t.ok(schema.required.includes(field), `${name}: ${field}`)
    for (const code of newerForm.differences)
      t.ok(
        differences.some((difference) => difference.code === code && difference.isOfClass),
        code,
      )
  }
})

t.test('only states with different names stay side by side', async (t) => {
  const slots = [control(station()), data(station(), { name: 'x' })].map((event) => {
    const shape = checkShape(event, { protocol: 'mqtt', now })
    return 'errors' in shape ? shape.errors : slotOf(shape.event, shape.kind)
  })
  t.strictSame(slots, ['traffic-announcement', ''])
})

t.test('a kind is found by its exact name only', async (t) => {
  for (const kind of eventKinds) t.equal(kindByName.get(kind.name), kind)
  for (const name of ['', 'constructor', '__proto__', 'track', 'de.org.hub.v1.radio.text']) {
    t.equal(kindByName.get(name), undefined, name)
  }
})

t.test('the classes are those of the kinds', async (t) => {
  t.strictSame([...new Set(eventKinds.map((kind) => kind.class))], eventClasses)
  t.equal(isEventClass('data'), true)
  t.equal(isEventClass('toString'), false)
})
