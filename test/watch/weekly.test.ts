import { setImmediate as nextTurn } from 'node:timers/promises'
import pino from 'pino'
import t from 'tap'
import { readWeek, weekBeside, weekOf } from '../../event/week.ts'
import { add, emptyCounts, type Sums } from '../../watch/programme.ts'
import { createWeekly } from '../../watch/weekly.ts'
import { createMemoryStore } from '../delivery/memory-store.ts'

/* The counts for weekly reports (open.md §7) in the store: added up over nodes, starts and faults of the store. */

const monday = Date.parse('2026-11-23T00:00:00Z')
const days = 24 * 3600_000
const house = 'urn:org:institution:a'

function open(store = createMemoryStore(), { isLeader = true } = {}) {
  const lines: string[] = []
  let now = monday
  const weekly = createWeekly({
    store: store.store,
    isLeader: () => isLeader,
    clock: () => now,
    log: pino({}, { write: (line: string) => void lines.push(JSON.parse(line).msg) }),
  })
  return {
    ...weekly,
    store,
    lines,
    goTo(at: number) {
      now = at
    },
    publish: (livestream: string, sums: Partial<Sums> = {}, institution = house) =>
      add(weekly.countsOf(livestream, institution, now), counts(sums)),
    async shown(week = weekOf(now), institution = house) {
      const { livestreams, refusals } = (await weekly.of(week, institution)) ?? {}
      return {
        events: Object.fromEntries([...(livestreams ?? [])].map(([id, { sums }]) => [id, sums.events])),
        refusals,
      }
    },
  }
}

function counts(sums: Partial<Sums>) {
  const empty = emptyCounts()
  return { ...empty, sums: { ...empty.sums, events: 1, ...sums } }
}

t.test('counts of nodes and of several starts add up, by week, institution and livestream', async (t) => {
  const store = createMemoryStore()
  const [one, two] = [open(store), open(store)]
  one.publish('urn:x')
  one.publish('urn:x')
  one.refused(house, ['payload.json', 'payload.json', 'topic.denied'])
  two.publish('urn:x')
  two.publish('urn:y')
  two.publish('urn:z', {}, 'urn:org:institution:b')
  two.refused(house, ['payload.json'])
  await Promise.all([one.close(), two.close()])
  const third = open(store)
  third.publish('urn:y')
  t.same(await third.shown(), {
    events: { 'urn:x': 3, 'urn:y': 2 },
    refusals: { events: 2, codes: { 'payload.json': 2, 'topic.denied': 1 } },
  })
  third.goTo(monday + 7 * days)
  third.publish('urn:x')
  t.same((await third.shown()).events, { 'urn:x': 1 })
  t.same((await third.shown(readWeek('2026-W48'))).events, { 'urn:x': 3, 'urn:y': 2 })
  t.same((await third.shown(undefined, 'urn:org:institution:c')).events, {})
})

t.test('a livestream that changes hands counts for each of both', async (t) => {
  const node = open()
  for (const institution of [house, 'urn:org:institution:b', house]) node.publish('urn:x', {}, institution)
  t.same((await node.shown()).events, { 'urn:x': 2 })
  t.same((await node.shown(undefined, 'urn:org:institution:b')).events, { 'urn:x': 1 })
})

t.test('what the store did not take is not lost, and does not count twice', async (t) => {
  const node = open()
  node.publish('urn:x')
  node.store.judge(() => 'refused')
  t.same((await node.shown()).events, {})
  node.publish('urn:x')
  node.store.judge(() => 'stored')
  t.same((await node.shown()).events, { 'urn:x': 2 })
  t.same(node.lines, ['counts of weekly reports not stored'])
})

t.test('a quarter of a year is kept', async (t) => {
  const node = open()
  const first = weekOf(monday)
  for (let n = 0; n < 13; n++) {
    node.goTo(weekBeside(first, n).from)
    node.publish('urn:x')
    node.refused(house, ['payload.json'])
    await node.shown()
  }
  t.ok(await node.of(first, house))
  node.goTo(weekBeside(first, 13).from)
  t.equal(await node.of(first, house), undefined)
  await node.close()
  const keys = ['counted/', 'refused/'].flatMap(node.store.keys)
  t.equal(keys.length, 24)
  t.ok(keys.every((key) => !key.includes(first.name)))
})

t.test('a thousand livestreams are written in few commits', async (t) => {
  const node = open()
  let commits = 0
  node.store.judge(() => {
    commits++
    return 'stored'
  })
  for (let n = 0; n < 1_000; n++) node.publish(`urn:${n}`)
  await node.close()
  t.equal(commits, 5)
})

t.test(
  'a write of very many livestreams begins in several turns, and counts what comes meanwhile',
  async (t) => {
    const node = open()
    const count = 30_000
    for (let n = 0; n < count; n++) node.publish(`urn:${n}`)
    let hasBegun = false
    node.store.judge(() => {
      hasBegun = true
      return 'stored'
    })
    const closing = node.close()
    let turns = 0
    for (; !hasBegun; turns++) {
      node.publish('urn:0')
      node.publish(`urn:${count - 1}`)
      await nextTurn()
    }
    await closing
    t.ok(turns > 2)
    const { events } = await node.shown()
    t.equal(events['urn:0'], 1 + turns)
    t.equal(events[`urn:${count - 1}`], 1 + turns)
  },
)
