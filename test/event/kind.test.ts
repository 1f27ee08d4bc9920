import t from 'tap'
import { eventClasses, eventKinds, isEventClass, kindByName } from '../../event/kind.ts'

t.test('the event kinds are those of design.md §7', async (t) => {
  t.strictSame(
    eventKinds.map(({ name, class: cls, suffix, timeField }) => [name, cls, suffix, timeField]),
    [
      ['de.org.hub.v1.radio.track.playing', 'track', 'track/playing', 'start'],
      ['de.org.hub.v1.radio.track.next', 'track', 'track/next', 'start'],
      ['de.org.hub.v1.radio.control', 'control', 'control', 'time'],
      ['de.org.hub.v1.radio.data', 'data', 'data', 'start'],
    ],
  )
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
