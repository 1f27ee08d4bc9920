import pino from 'pino'
import t from 'tap'
import { createRecords } from '../../watch/records.ts'
import { openSilences } from '../../watch/silences.ts'
import { createMemoryStore } from '../delivery/memory-store.ts'

/* What a node does about silent livestreams (open.md §7): it stores what is usual, and one node tells of them. */

const minutes = 60_000
const days = 24 * 60 * minutes
const monday = Date.parse('2026-01-05T00:00:00Z')

/** A node on a store. `store`: that of an earlier node. */
async function open(store = createMemoryStore(), { at = monday, isLeader = true } = {}) {
  let now = at
  let isCutOff = false
  const lines: Record<string, unknown>[] = []
  let commits = 0
  const silences = await openSilences({
    records: createRecords(() => ({})),
    store: {
      ...store.store,
      commit(changes) {
        commits++
        return store.store.commit(changes)
      },
    },
    isLeader: () => isLeader,
    isCutOff: () => isCutOff,
    clock: () => now,
    log: pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) }),
  })
  return {
    ...silences,
    store,
    commits: () => commits,
    told: () => lines.map(({ msg, livestream }) => [msg, livestream]),
    cutOff: (value: boolean) => {
      isCutOff = value
    },
    /** Time goes by, and these livestreams speak each four minutes. */
    pass(ms: number, ...speaking: string[]) {
      for (const end = now + ms; now < end; now += minutes) {
        if (((now - monday) / minutes) % 4 === 0) silences.published(speaking, 'urn:house', now)
        silences.look()
      }
      return now
    },
  }
}

const both = ['urn:a', 'urn:b']

t.test('a dead playout is told of once, and that it is back', async (t) => {
  const node = await open()
  node.pass(9 * days, ...both)
  node.pass(30 * minutes, 'urn:b')
  t.same(node.told(), [['a livestream is silent', 'urn:a']])
  t.match(node.silentSince('urn:a'), /^2026-01-13T23:56/)
  t.equal(node.silentSince('urn:b'), undefined)
  t.equal(node.count(), 1)
  node.pass(10 * minutes, ...both)
  t.same(node.told().slice(1), [['a livestream speaks again', 'urn:a']])
  t.equal(node.count(), 0)
  t.ok(node.commits() < 9 * 24 * 2 + 10, `written once an hour: ${node.commits()}`)
})

t.test('a start forgets nothing, and its own outage is nobody’s silence', async (t) => {
  const first = await open()
  const stopped = first.pass(9 * days, ...both)
  await first.close()
  const second = await open(first.store, { at: stopped + 120 * minutes })
  second.pass(8 * minutes)
  t.same(second.told(), [])
  second.pass(8 * minutes, 'urn:b')
  t.same(second.told(), [['a livestream is silent', 'urn:a']])
})

t.test('a node that is cut off takes nobody for silent', async (t) => {
  const node = await open()
  node.pass(9 * days, ...both)
  node.cutOff(true)
  node.pass(60 * minutes)
  node.cutOff(false)
  node.pass(8 * minutes)
  t.same(node.told(), [])
})

t.test('a node that does not lead marks them, and tells and stores nothing', async (t) => {
  const node = await open(createMemoryStore(), { isLeader: false })
  node.pass(9 * days, ...both)
  node.pass(30 * minutes, 'urn:b')
  await node.close()
  t.equal(node.count(), 1)
  t.same(node.told(), [])
  t.equal(node.commits(), 0)
})

t.test('a livestream that is gone for good leaves no record', async (t) => {
  const first = await open()
  const stopped = first.pass(minutes, ...both)
  await first.close()
  const second = await open(first.store, { at: stopped + 61 * days })
  second.pass(8 * minutes, 'urn:b')
  await second.close()
  const keys: string[] = []
  for await (const [key] of first.store.store.range('heard/')) keys.push(decodeURIComponent(key))
  t.same(keys, ['heard/urn:b'])
})

t.test('what the store has refused is stored the next time', async (t) => {
  const node = await open()
  node.store.judge(() => 'refused')
  node.pass(120 * minutes, ...both)
  await node.close()
  node.store.judge(() => 'stored')
  node.look()
  await node.close()
  const { store } = node
  const started = await open(store)
  t.same(both.map(started.institutionOf), ['urn:house', 'urn:house'])
})
