import t from 'tap'
import { eventKinds, type HubEvent } from '../../../event/kind.ts'
import { type Item, itemOf } from '../../../watch/item.ts'
import { createLoops } from '../../../watch/loops.ts'
import { createProgramme, emptyCounts } from '../../../watch/programme.ts'
import { createRecords } from '../../../watch/records.ts'
import { collectGarbage } from '../../collect-garbage.ts'
import { playing, station } from '../../events.ts'
import { createRandom, type Random } from '../../random.ts'

/* Loops of rebroadcasters (open.md §7) over 100 days of 60 stations with shared charts. Nobody rebroadcasts in a loop. */

const seconds = 1_000
const minutes = 60 * seconds
const hours = 60 * minutes
const days = 24 * hours

interface Play {
  at: number
  livestreams: string[]
  item: Item
}

const charts = Array.from({ length: 150 }, (_, n) =>
  song(`DEXX126${String(n).padStart(5, '0')}`, `Song ${n}`, 150 + (n % 110)),
)
const stations = Array.from({ length: 60 }, (_, n) => `urn:station:${n}`)
/** Their playouts send the current element again and again. */
const repeating = new Set(stations.filter((_, n) => n % 10 === 0))
/** They carry the night programme of the first, most of them by rebroadcasting its events, the last five in one event. */
const atNight = stations.slice(0, 40)
/** A hostile house, which plays what a station has announced before the station does. */
const [follower = '', victim = ''] = stations.slice(-2)

function song(isrc: string, title: string, length: number): Item {
  const item = itemOf(JSON.parse(JSON.stringify(playing(station(), { isrc, title, length }))))
  if (!item) throw new Error('a song is an item')
  return item
}

t.test('100 days of 60 stations with shared charts: no false warning', async (t) => {
  const loops = createLoops(createRecords(() => ({})))
  const random = createRandom('charts')
  const warned: string[] = []
  let events = 0
  for (let day = 0; day < 100; day++) {
    for (const { livestreams, item, at } of dayOf(day * days, random)) {
      events++
      for (const { livestreamId, rounds } of loops.roundsOf(item, livestreams, at))
        warned.push(`day ${day}: ${livestreamId}, ${rounds} rounds of ${item.keys[1]}`)
      loops.published(item, livestreams, at)
    }
  }
  t.same(warned, [])
  t.ok(events > 2_000_000, String(events))
})

t.test(
  'in such a day a pair that begins to rebroadcast each other is found within three rounds',
  async (t) => {
    const loops = createLoops(createRecords(() => ({})))
    const plays = dayOf(0, createRandom('pair'))
    const begins = plays.findIndex(({ at }) => at > 12 * hours)
    for (const { livestreams, item, at } of plays.slice(0, begins)) loops.published(item, livestreams, at)
    const item = song('DEXX12699999', 'A new song', 200)
    const rounds: number[][] = []
    for (let n = 0; n < 10; n++) {
      const pair = stations.slice(41, 43)
      for (const [index, livestream] of pair.entries()) {
        const at = 12 * hours + n * 4 * seconds + index * 2 * seconds
        rounds.push(loops.roundsOf(item, [livestream], at).map(({ rounds }) => rounds))
        loops.published(item, [livestream], at)
      }
    }
    t.same(rounds.slice(0, 8), [[], [], [], [], [], [], [3], [3]])
  },
)

t.test('memory is bounded: a flood of items and livestreams', async (t) => {
  const loops = createLoops(createRecords(() => ({})))
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < 300_000; n++) {
    const item = { keys: [`${n} ${'x'.repeat(100)}`], lengthMs: 600_000 }
    loops.published(item, [`urn:${n % 100_000}`], n)
  }
  collectGarbage()
  t.ok(process.memoryUsage().heapUsed - before < 200 * 1024 * 1024)
  for (let round = 0; round < 3; round++) {
    for (const one of ['a', 'b']) loops.published({ keys: ['x'], lengthMs: 1 }, [one], 300_000 + round)
  }
  const item = { keys: ['x'], lengthMs: 1 }
  t.match(loops.roundsOf(item, ['a'], 300_010), [{ livestreamId: 'a', rounds: 3 }])
  t.same(loops.published(item, ['a'], 300_010), ['a'])
  t.match(loops.markOf('a', 300_010), { with: 'b' })
})

t.test('memory is bounded: of the longest titles and item ids, no more stays than is compared', async (t) => {
  const loops = createLoops(createRecords(() => ({})))
  const programme = createProgramme(createRecords(() => ({})))
  const total = emptyCounts()
  const kind = eventKinds.find(({ isNow }) => isNow)
  if (!kind) throw new Error('no kind for what plays')
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < 300; n++) {
    const long = `${n} ${'x'.repeat(200_000)}`
    const event: HubEvent = JSON.parse(
      JSON.stringify(playing(station(), { title: long, artist: long, playlistItemId: long })),
    )
    const of = { event, kind, time: n, institutionId: 'urn:house' }
    programme.count(total, `urn:${n}`, of, { now: n, isInterrupted: false })
    loops.published(itemOf(event), [`urn:${n}`], n)
  }
  collectGarbage()
  t.ok(process.memoryUsage().heapUsed - before < 10 * 1024 * 1024)
  t.equal(total.sums.elements, 300)
  t.equal(loops.marked(300).length, 0)
})

/** What all stations publish on a day, in the order of time. */
function dayOf(from: number, random: Random): Play[] {
  const plays: Play[] = []
  const night = programmeOf(from, from + 5 * hours, random)
  for (const play of night) {
    const original = eventsOf([atNight[0] ?? ''], play, random)
    plays.push(...original)
    // A rebroadcaster passes on each event that it receives, also the corrections.
    for (const livestream of atNight.slice(1, 35)) {
      for (const event of original)
        plays.push({ ...event, livestreams: [livestream], at: event.at + random.between(20, 3_000) })
    }
    plays.push(...eventsOf(atNight.slice(35), play, random))
  }
  for (const livestream of stations) {
    const begins = atNight.includes(livestream) ? 5 * hours : 0
    for (const play of programmeOf(from + begins, from + days, random)) {
      plays.push(...eventsOf([livestream], play, random))
      // It knows the title from `next`, and goes on repeating it.
      if (livestream === victim) {
        for (const early of [-120, -60, -5, 20, 40])
          plays.push({ ...play, livestreams: [follower], at: play.at + early * seconds })
      }
    }
  }
  return plays.sort((a, b) => a.at - b.at)
}

/** One event or more of an element: corrections come within seconds, or the playout repeats it. */
function eventsOf(livestreams: string[], { item, at }: Omit<Play, 'livestreams'>, random: Random): Play[] {
  const delay = random.between(0, 2 * seconds)
  const plays = [{ livestreams, item, at: at + delay }]
  if (repeating.has(livestreams[0] ?? '')) {
    for (let again = 30 * seconds; again < item.lengthMs; again += 30 * seconds)
      plays.push({ livestreams, item, at: at + delay + again + random.between(0, 500) })
  } else if (random.happens(0.1)) {
    const corrections = random.oneOf([1, 1, 1, 2])
    for (let n = 1; n <= corrections; n++)
      plays.push({ livestreams, item, at: at + delay + n * random.between(1, 20) * seconds })
  }
  return plays
}

/** Songs of the shared charts, the first of them more often, and news on each half hour. */
function programmeOf(from: number, to: number, random: Random): Omit<Play, 'livestreams'>[] {
  const plays: Omit<Play, 'livestreams'>[] = []
  const recent: Item[] = []
  for (let at = from + random.between(0, 3 * minutes); at < to; ) {
    const rank = Math.floor(random.between(0, 1) ** 2 * charts.length)
    const item = charts[rank]
    if (!item || recent.includes(item)) continue
    recent.push(item)
    // No station plays a song more than once an hour.
    if (recent.length > 18) recent.shift()
    plays.push({ item, at })
    at += item.lengthMs - random.between(0, 5 * seconds)
    if (Math.floor(at / (30 * minutes)) !== Math.floor((at - item.lengthMs) / (30 * minutes))) {
      // News and spots are no items: many houses have the same at the same time.
      at += 240 * seconds
    }
  }
  return plays
}
