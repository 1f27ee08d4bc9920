import t from 'tap'
import { createNewestFirst, type Sendable } from '../../client/newest-first.ts'
import { control, data, playing, serviceOf, station } from '../events.ts'
import { games, play, waiting } from './newest-first-games.ts'

const now = Date.parse('2026-01-31T12:00:00Z')
const at = (seconds: number) => new Date(now + seconds * 1000).toISOString()
const services = [serviceOf(station(0, 0)), serviceOf(station(0, 1))]

t.test('a track event with a newer one behind it for all its livestreams is held', async (t) => {
  const old = waiting(playing(station(), { start: at(0) }))
  const newer = waiting(playing(station(), { start: at(180) }))
  t.same(held([old, newer]), [old])
  t.same(held([newer, old]), [], 'one behind it that is older says nothing')
})

t.test('of two with the same start the later one counts', async (t) => {
  const [first, second] = [
    waiting(playing(station(), { start: at(0) })),
    waiting(playing(station(), { start: at(0) })),
  ]
  t.same(held([first, second]), [first])
})

t.test('what is published ends what it stood before, and nothing else', async (t) => {
  const [first, second, third, next] = [0, 180, 360, 540].map((start) =>
    waiting(playing(station(), { start: at(start) })),
  )
  if (!first || !second || !third || !next) throw new Error('there are four')
  const order = createNewestFirst<Sendable>()
  t.same(order.hold([first, second, third]), [first, second])
  order.add(next)
  t.same(order.left(third), [], 'the one that came meanwhile is newer')
  t.same(order.published(next), [first, second])
  t.same([first, second, next].flatMap(order.left), [])
})

t.test('if the newest is refused, the one before it is due, and the others wait behind that', async (t) => {
  const [first, second, third] = [0, 180, 360].map((start) =>
    waiting(playing(station(), { start: at(start) })),
  )
  if (!first || !second || !third) throw new Error('there are three')
  const order = createNewestFirst<Sendable>()
  order.hold([first, second, third])
  t.same(order.left(third), [second])
  t.same([first, second].map(order.isHeld), [true, false])
  t.same(order.left(second), [first])
  t.notOk(order.isHeld(first))
})

t.test('more events wait for a livestream than a function has room for arguments', async (t) => {
  const event = JSON.stringify(playing(station(), { start: at(0) }))
  const all = Array.from({ length: 200_000 }, () => ({
    payload: event,
    isAcknowledged: false,
    isSentAgain: false,
  }))
  const order = createNewestFirst<Sendable>()
  t.equal(order.hold(all).length, all.length - 1)
  const [first] = all
  t.same(first && order.left(first), [])
})

t.test('a livestream that nothing newer stands behind makes the event worth sending', async (t) => {
  const both = waiting(playing(station(), { start: at(0), services }))
  const one = waiting(playing(station(0, 0), { start: at(180) }))
  const other = waiting(playing(station(0, 1), { start: at(180) }))
  t.same(held([both, one]), [])
  t.same(held([both, one, other]), [both])
})

t.test('an event for two livestreams is superseded when newer ones are published for both', async (t) => {
  const [both, one, other] = [
    waiting(playing(station(), { start: at(0), services })),
    waiting(playing(station(0, 0), { start: at(180) })),
    waiting(playing(station(0, 1), { start: at(180) })),
  ]
  const order = createNewestFirst<Sendable>()
  order.hold([both, one, other])
  t.same(order.published(one), [])
  t.same(order.left(one), [])
  t.same(order.hold([both, other]), [both], 'and what is published counts on the next connection too')
  t.same(order.published(other), [both])

  const again = createNewestFirst<Sendable>()
  again.hold([both, one, other])
  again.published(one)
  again.left(one)
  t.same(again.left(other), [both], 'the second one was refused')
})

t.test('playing, next and data say nothing about each other', async (t) => {
  const next = { event: 'de.org.hub.v1.radio.track.next' }
  const events = [
    waiting(playing(station(), { start: at(0) })),
    waiting(playing(station(), { ...next, start: at(180) })),
    waiting(data(station(), { start: at(200) })),
    waiting(data(station(), { start: at(230) })),
  ]
  t.same(held(events), [])
})

t.test('an acknowledged event only waits for its report', async (t) => {
  const old = { ...waiting(playing(station(), { start: at(0) })), isAcknowledged: true }
  const again = { ...waiting(playing(station(), { start: at(0) })), isSentAgain: true }
  t.same(held([old, again, waiting(playing(station(), { start: at(180) }))]), [])
})

t.test('the hub decides about an event that cannot be judged here', async (t) => {
  const newer = waiting(playing(station(), { start: at(180) }))
  for (const odd of [
    playing(station(), { start: 'yesterday' }),
    playing(station(), { start: 7 }),
    playing(station(), { services: [] }),
    playing(station(), { services: 'all' }),
    control(station(), { validUntil: null }),
    { event: 7 },
    [],
  ]) {
    t.same(held([waiting(odd), newer]), [], JSON.stringify(odd).slice(0, 100))
  }
})

t.test('whatever is refused, the newest of the others is on air in the end', async (t) => {
  const wrong = games.filter(({ starts, isRefused }) => {
    const ends = play(starts, isRefused)
    const isOutrun = (old: number, by: number[]) =>
      by.some((index) => index > old && (starts[index] ?? 0) >= (starts[old] ?? 0))
    const valid = starts.filter((_, index) => !isRefused(index))
    return !(
      [...ends.published, ...ends.refused, ...ends.superseded].toSorted().join() === '0,1,2,3' &&
      ends.superseded.every((old) => isOutrun(old, ends.published)) &&
      // Nothing older than what is published is sent.
      !ends.published.some((old, nth) => isOutrun(old, ends.published.slice(0, nth))) &&
      (valid.length === 0 || ends.published.some((index) => starts[index] === Math.max(...valid)))
    )
  })
  t.same(wrong, [])
})

function held(items: Sendable[]): readonly Sendable[] {
  return createNewestFirst<Sendable>().hold(items)
}
