import t from 'tap'
import type { HubEvent } from '../../event/kind.ts'
import { itemOf } from '../../watch/item.ts'
import { createLoops } from '../../watch/loops.ts'
import { createRecords } from '../../watch/records.ts'
import { playing, station } from '../events.ts'

/*
 * Loops of rebroadcasters (open.md §7): an echo is an item that a livestream publishes again after another livestream
 * published it in between. Three echoes are a loop.
 */

const [a, b, c] = ['urn:a', 'urn:b', 'urn:c']

/** Livestreams that publish, one after the other. `at` returns the rounds that the hub warns of. */
function watched() {
  const loops = createLoops(createRecords(() => ({})))
  let now = 0
  return {
    loops,
    now: () => now,
    publish(livestreams: string | string[], afterMs: number, fields: object = {}) {
      now += afterMs
      const ids = [livestreams].flat()
      const item = itemOf(eventOf(fields))
      const rounds = loops.roundsOf(item, ids, now).map(({ livestreamId, rounds }) => [livestreamId, rounds])
      loops.published(item, ids, now)
      return rounds
    },
  }
}

function eventOf(fields: object = {}): HubEvent {
  return JSON.parse(JSON.stringify(playing(station(), { length: 200, ...fields })))
}

t.test('a pair that rebroadcasts each other is warned of after three rounds, both of them', async (t) => {
  const { publish, loops, now } = watched()
  const warned = Array.from({ length: 5 }, () => [publish(a, 40), publish(b, 40)])
  t.same(warned, [
    [[], []],
    [[], []],
    [[], []],
    [[[a, 3]], [[b, 3]]],
    [[[a, 4]], [[b, 4]]],
  ])
  t.match(loops.markOf(a, now()), { with: b })
  t.match(loops.markOf(b, now()), { with: a })
  t.equal(loops.marked(now()).length, 2)
  t.equal(loops.markOf(a, now() + 2 * 3600_000), undefined, 'the mark ends an hour after the last round')
})

t.test('so is a triangle, also where each waits for some seconds', async (t) => {
  for (const delayMs of [5, 1_000, 10_000]) {
    const { publish, loops, now } = watched()
    for (let round = 0; round < 3; round++) for (const one of [a, b, c]) t.same(publish(one, delayMs), [])
    t.same([publish(a, delayMs), publish(b, delayMs), publish(c, delayMs)], [[[a, 3]], [[b, 3]], [[c, 3]]])
    t.equal(loops.marked(now()).length, 3)
  }
})

t.test('it is the same item with other case, white space, or only its ISRC', async (t) => {
  const forms = [
    { title: 'Ebbe und Flut', artist: 'Mira Hollund', isrc: 'DE-XX1-26-00042' },
    { title: ' EBBE  UND\tFLUT', artist: 'mira hollund' },
    { title: 'Ebbe und Flut (Radio Edit)', artist: 'M. Hollund', isrc: 'dexx12600042' },
  ]
  for (const [first = {}, second = {}] of [
    [forms[0], forms[1]],
    [forms[0], forms[2]],
  ]) {
    const { publish } = watched()
    for (let round = 0; round < 3; round++) t.same([publish(a, 40, first), publish(b, 40, second)], [[], []])
    t.same(publish(a, 40, first), [[a, 3]])
  }
})

t.test('what says nothing when it comes again is no item', async (t) => {
  const nothing: object[] = [
    { type: 'commercial', title: 'Werbung', artist: 'Seebad' },
    { type: 'jingle', artist: 'Küstenwelle' },
    { type: 'news', title: 'Nachrichten', artist: 'Küstenfunk' },
    { title: ' ', artist: ' ' },
  ]
  for (const fields of nothing) t.equal(itemOf(eventOf(fields)), undefined)
  t.same(itemOf(eventOf({ isrc: 'no ISRC' }))?.keys.length, 1)
})

t.test(
  'an event that says the same as the one before has its item, and each change makes another',
  async (t) => {
    const first = itemOf(eventOf({ isrc: 'DEXX12600042' }))
    t.equal(itemOf(eventOf({ isrc: 'DEXX12600042', playlistItemId: 'item-2' }), first), first)
    for (const change of [
      { title: 'Flut' },
      { artist: 'Seebad' },
      { isrc: null },
      { length: 201 },
      { type: 'live' },
    ]) {
      const event = eventOf({ isrc: 'DEXX12600042', ...change })
      const item = itemOf(event, first)
      t.not(item, first)
      t.same(item, itemOf(event))
    }
    t.equal(itemOf(eventOf({ isrc: 'DEXX12600042', type: 'news' }), first), undefined)
    t.equal(itemOf(eventOf({ title: 'x'.repeat(1_000) }))?.said, undefined, 'a long text is not kept')
  },
)

t.test('a hit that two stations really play at once is no loop, also when both correct it', async (t) => {
  const { publish } = watched()
  for (let day = 0; day < 50; day++) {
    for (const afterMs of [3600_000, 20_000]) {
      t.same(publish(a, afterMs), [])
      t.same(publish(b, 1_000), [])
    }
  }
})

t.test('a house that plays what another has announced first makes no echo of it', async (t) => {
  const { publish } = watched()
  for (let n = 0; n < 20; n++) {
    const title = `Song ${n}`
    for (let again = 0; again < 5; again++) t.same(publish(b, 5_000, { title }), [])
    t.same(publish(a, 5_000, { title }), [])
    t.same(publish(b, 5_000, { title }), [])
  }
})

t.test('a playout that sends the current element again and again makes no echoes by it', async (t) => {
  const { publish } = watched()
  const repeat = (title: string, afterMs: number) => publish(a, afterMs, { title })
  for (let n = 0; n < 5; n++) repeat('Song 1', 30_000)
  for (let n = 0; n < 20; n++) {
    t.same(repeat('Song 2', 29_000), [])
    t.same(publish(b, 1_000, { title: 'Song 2' }), [])
  }
  for (let round = 0; round < 3; round++)
    t.same([repeat('Song 3', 40), publish(b, 40, { title: 'Song 3' })], [[], []])
  t.same(repeat('Song 3', 40), [[a, 3]], 'a loop is faster than its repetitions')
})

t.test('a playout that sends each element again, and who rebroadcasts it, are no loop', async (t) => {
  const { publish } = watched()
  for (let n = 0; n < 50; n++) {
    t.same(publish(a, 29_000), [])
    t.same(publish(b, 1_000), [])
  }
})

t.test('an event of several livestreams is no echo among them', async (t) => {
  const { publish } = watched()
  for (let n = 0; n < 10; n++) t.same(publish([a, b, c], 10_000), [])
  const { loops } = watched()
  const item = itemOf(eventOf())
  for (let n = 0; n < 10; n++) {
    for (const [index, livestream] of [a, b, c].entries())
      t.same(loops.published(item, [livestream], n * 10_000, index > 0), [], 'as another node tells it')
  }
})
