import t from 'tap'
import { createRecords } from '../../watch/records.ts'
import { createSilence } from '../../watch/silence.ts'
import { createRandom, type Random } from '../random.ts'

/*
 * The silence alarm (open.md §7): twice the usual gap of this hour of the week, at least ten minutes, without an event.
 * Time is simulated.
 */

const minutes = 60_000
const hours = 60 * minutes
const days = 24 * hours
const monday = Date.parse('2026-01-05T00:00:00Z')

/** The longest gap that a station has at an hour of a day, minutes. 0: it has no events at all. */
type Programme = (hour: number) => number
const music: Programme = () => 4
/** Nothing from midnight to five, and half an hour of talk at noon. */
const withNights: Programme = (hour) => (hour < 5 ? 0 : hour === 12 ? 30 : 5)
/** A quarter of an hour of news at each third hour. */
const news: Programme = (hour) => (hour % 3 === 0 ? 15 : 6)
const programmes = [music, withNights, news] as const

/** The times of the events of a station, in order. `hourOf`: the hour of the day, by its clock. */
function eventsOf(
  programme: Programme,
  [from, upTo]: readonly [from: number, upTo: number],
  random: Random,
  hourOf = (at: number) => new Date(at).getUTCHours(),
): number[] {
  const events: number[] = []
  for (let at = from; at < upTo; ) {
    const gap = programme(hourOf(at))
    if (gap > 0) events.push(at)
    at +=
      gap === 0
        ? hours - (at % hours) + random.between(0, 3) * minutes
        : random.between(0.5, 1) * gap * minutes
  }
  return events
}

t.test(
  '30 days of 60 stations with nights and news: at most one false alarm a week, and each dead playout is found',
  async (t) => {
    const silence = createSilence(createRecords(() => ({})))
    const random = createRandom('silence')
    const dead = [
      { station: 0, at: monday + 9 * days + 14.4 * hours, withinMs: 10 * minutes },
      { station: 1, at: monday + 16 * days + 9.2 * hours, withinMs: 10 * minutes },
      { station: 1, at: monday + 23 * days + 12.1 * hours, withinMs: 60 * minutes },
      { station: 2, at: monday + 25 * days + 2.4 * hours, withinMs: 12 * minutes },
    ]
    const isDead = (station: number, at: number) =>
      dead.find((one) => one.station === station && at >= one.at && at < one.at + 2 * hours)
    const all = Array.from({ length: 60 }, (_, station) =>
      eventsOf(programmes[station % 3] ?? music, [monday, monday + 30 * days], random)
        .filter((at) => !isDead(station, at))
        .map((at) => ({ at, station })),
    )
      .flat()
      .sort((a, b) => a.at - b.at)
    const alarms: { station: number; at: number }[] = []
    let next = 0
    for (let now = monday; now < monday + 30 * days; now += minutes / 2) {
      for (; (all[next]?.at ?? Infinity) <= now; next++) {
        const { station = 0, at = 0 } = all[next] ?? {}
        silence.published(`urn:${station}`, 'urn:house', at)
      }
      for (const livestream of silence.look(now))
        alarms.push({ station: Number(livestream.slice(4)), at: now })
    }
    for (const { station, at, withinMs } of dead) {
      const before = all.filter((event) => event.station === station && event.at < at).at(-1)?.at ?? 0
      const found = alarms.find((alarm) => alarm.station === station && alarm.at > at)
      // The playout looks each half minute.
      t.ok(
        found && found.at - before <= withinMs + minutes,
        `${station}: ${((found?.at ?? 0) - before) / minutes}`,
      )
    }
    const false_ = alarms.filter(({ station, at }) => !isDead(station, at))
    t.ok(false_.length <= 4, `${false_.length} false alarms`)
    for (const { station, at } of false_) t.comment(`${station} at ${new Date(at).toISOString()}`)
  },
)

t.test('summer time begins and ends, and no station that follows the clock is silent', async (t) => {
  process.env.TZ = 'Europe/Berlin'
  const hourOf = (at: number) => new Date(at).getHours()
  for (const change of ['2026-03-29', '2026-10-25']) {
    const silence = createSilence(createRecords(() => ({})))
    const from = Date.parse(change) - 20 * days
    const span = [from, from + 30 * days] as const
    const all = programmes
      .flatMap((programme) =>
        eventsOf(programme, span, createRandom(change), hourOf).map((at) => ({ at, programme })),
      )
      .sort((a, b) => a.at - b.at)
    const alarms = all.flatMap(({ at, programme }) => {
      const silent = silence.look(at)
      silence.published(`urn:${programmes.indexOf(programme)}`, 'urn:house', at)
      return silent.map((id) => `${id} at ${new Date(at).toISOString()}`)
    })
    t.same(alarms, [])
  }
})

/** A hub whose stations have been heard for nine days. */
function known(stations = 6) {
  const silence = createSilence(createRecords(() => ({})))
  for (let now = monday; now <= monday + 9 * days; now += 4 * minutes)
    for (let n = 0; n < stations; n++) silence.published(`urn:${n}`, 'urn:house', now + n * 1000)
  return { silence, now: monday + 9 * days + minutes }
}

t.test(
  'one station that stops is found after ten minutes, once, and is silent until it speaks',
  async (t) => {
    const { silence, now } = known()
    const speak = (at: number) => {
      for (let n = 1; n < 6; n++) silence.published(`urn:${n}`, 'urn:house', at)
    }
    for (let at = now; at < now + 8 * minutes; at += minutes) {
      speak(at)
      t.same(silence.look(at), [])
    }
    speak(now + 11 * minutes)
    t.same(silence.look(now + 11 * minutes), ['urn:0'])
    t.same(silence.look(now + 12 * minutes), [])
    t.equal(silence.silent().size, 1)
    t.equal(silence.silentSince('urn:0'), monday + 9 * days)
    t.equal(silence.published('urn:0', 'urn:house', now + 20 * minutes), true)
    t.equal(silence.silentSince('urn:0'), undefined)
  },
)

t.test('a silence of the hub itself alarms for nobody', async (t) => {
  const { silence, now } = known()
  for (let at = now; at < now + 60 * minutes; at += minutes / 2)
    t.same(silence.look(at), [], 'nobody gets through')
  silence.published('urn:1', 'urn:house', now + 60 * minutes)
  t.same(silence.look(now + 60 * minutes), [], 'the first that is back')
  silence.interrupted(now + 65 * minutes)
  t.same(silence.look(now + 66 * minutes), [], 'a node that was cut off')
})

t.test('what was stored survives a start, and silence counts from the start on', async (t) => {
  const { silence, now } = known()
  const again = createSilence(createRecords(() => ({})))
  for (const [id, { institutionId, gaps, since, at }] of silence.all())
    again.restore(id, { institutionId, gaps, since, at }, now + 5 * hours)
  t.same(again.look(now + 5 * hours), [])
  for (let n = 1; n < 6; n++) again.published(`urn:${n}`, 'urn:house', now + 5 * hours + 10 * minutes)
  t.same(again.look(now + 5 * hours + 10.5 * minutes), ['urn:0'])
  t.equal(again.silentSince('urn:0'), monday + 9 * days, 'it says when the last event really was')
})

t.test('nobody is silent in its first days, nor in an hour of which nothing is known', async (t) => {
  const silence = createSilence(createRecords(() => ({})))
  silence.published('urn:0', 'urn:house', monday)
  silence.published('urn:0', 'urn:house', monday + 4 * minutes)
  t.same(silence.look(monday + 5 * days), [])
  silence.published('urn:0', 'urn:house', monday + 7 * days + 36 * hours)
  t.same(silence.look(monday + 7 * days + 46 * hours), [])
})

t.test('memory is bounded, and a livestream that is gone for good is forgotten', async (t) => {
  const silence = createSilence(createRecords(() => ({})))
  for (let n = 0; n < 70_000; n++) silence.published(`urn:${n}`, 'urn:house', monday + n)
  t.equal([...silence.all()].length, 60_000)
  silence.published('urn:7', 'urn:house', monday + 70 * days)
  silence.look(monday + 70 * days)
  t.same(
    [...silence.all()].map(([id]) => id),
    ['urn:7'],
  )
})
