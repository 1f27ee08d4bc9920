import t from 'tap'
import { createKnownEvents } from '../../../delivery/worth/known-events.ts'
import { eventKinds } from '../../../event/kind.ts'
import { radioTopic } from '../../../event/topic.ts'
import type { Entry } from '../../../journal/entry.ts'
import { collectGarbage } from '../../collect-garbage.ts'
import { station } from '../../events.ts'

t.test('large payloads of events that may still count do not fill the memory', async (t) => {
  let listener: (entry: Entry, bytes: number) => void = () => {}
  const onEach = (each: typeof listener) => {
    listener = each
    return () => {}
  }
  const known = createKnownEvents({
    journal: { onEach },
    retained: { topics: () => [], stored: () => undefined },
    moment: () => ({ now: Date.now(), steady: Date.now(), elapsed: performance.now() }),
  })
  const kind = eventKinds.find(({ isNow }) => isNow)
  if (!kind) throw new Error('no kind is now')
  const topic = radioTopic(station().id, kind)
  const payloads = [1, 2, 3].map((number) => {
    const payload = Buffer.from(
      JSON.stringify({ id: `${number}`, playlistItemId: `item ${number}`, title: 'x'.repeat(100_000) }),
    )
    const retained = { time: Date.now() + number } as Entry['retained']
    listener({ topic, payload, position: number, at: Date.now(), retained } as Entry, payload.length)
    return new WeakRef(payload)
  })
  // A WeakRef holds its object until the end of this turn.
  await new Promise(setImmediate)
  collectGarbage()
  t.same(
    payloads.map((payload) => payload.deref() !== undefined),
    [false, false, true],
    'only the last one is kept',
  )
  t.same(
    known.newest(topic).map(({ id, item }) => [id, item]),
    [
      ['1', 'item 1'],
      ['2', 'item 2'],
      ['3', 'item 3'],
    ],
  )
})

t.test('of many events of a topic at most 100 are kept, the newest among them', async (t) => {
  const { known, note, topic } = open()
  for (let number = 1; number <= 1000; number++) {
    note(number)
    const events = known.newest(topic)
    if (events.length > 100 || events.at(-1)?.position !== number)
      t.fail(`after ${number} events: ${events.length} kept, the last is ${events.at(-1)?.position}`)
  }
  t.ok(known.newest(topic).length >= 50)
})

t.test('an event that is over for every delay makes room', async (t) => {
  const { known, note, topic, clock } = open()
  for (let number = 1; number <= 3; number++) note(number)
  clock.now += 3600_000
  clock.elapsed += 3600_000
  note(4)
  t.same(
    known.newest(topic).map(({ position }) => position),
    [3, 4],
    'of those that have begun long ago, the newest counts',
  )
})

function open() {
  let listener: (entry: Entry, bytes: number) => void = () => {}
  const clock = { now: Date.now(), steady: Date.now(), elapsed: performance.now() }
  const known = createKnownEvents({
    journal: {
      onEach(each) {
        listener = each
        return () => {}
      },
    },
    retained: { topics: () => [], stored: () => undefined },
    moment: () => clock,
  })
  const kind = eventKinds.find(({ isNow }) => isNow)
  if (!kind) throw new Error('no kind is now')
  const topic = radioTopic(station().id, kind)
  const note = (number: number) => {
    const payload = Buffer.from(JSON.stringify({ id: `${number}`, playlistItemId: `item ${number}` }))
    const retained = { time: clock.now + number / 1000 } as Entry['retained']
    listener({ topic, payload, position: number, at: clock.now, retained } as Entry, payload.length)
  }
  return { known, note, topic, clock }
}
