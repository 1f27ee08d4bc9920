import t from 'tap'
import { appendChanges, journalKey, journalPrefix } from '../../journal/entry.ts'
import { createRecentReports, openJournal } from '../../journal/journal.ts'
import { createMemoryStore } from '../delivery/memory-store.ts'

/** A journal with messages of one stream, on three topics in turn. Message `n` was accepted at time `n`. */
async function start(count: number) {
  const { store } = createMemoryStore()
  const journal = await openJournal(store)
  for (let position = 1; position <= count; position++) {
    const topic = ['a', 'b', 'c'][position % 3] ?? ''
    const payload = Buffer.from(String(position))
    const message = { topic, stream: 's', payload, qos: 1 as const, queue: { keep: 'latest' as const } }
    await store.commit(journal.append([message], position).changes)
  }
  return journal
}

/** As the client of Redis hands out a value: a part of what it received in one piece. */
function received(value: Buffer): Buffer {
  return Buffer.concat([Buffer.alloc(64 * 1024), value]).subarray(64 * 1024, 64 * 1024 + value.length)
}

t.test('the newest messages of some topics since a time, in order', async (t) => {
  const journal = await start(1_300)
  const positions = async (topics: string[], since: number, count: number) =>
    (await journal.latestOf('s', { topics, since, count })).map(({ position }) => position)
  t.same(await positions(['a', 'b', 'c'], 1_297, 100), [1_297, 1_298, 1_299, 1_300])
  t.same(await positions(['a'], 1_290, 100), [1_290, 1_293, 1_296, 1_299])
  t.same(await positions(['a', 'b'], 1, 3), [1_297, 1_299, 1_300])
  t.equal((await positions(['a', 'b', 'c'], 0, 2_000)).length, 1_300, 'over several pages')
  t.same(await positions(['d'], 0, 10), [])
  t.same(await positions(['a'], 2_000, 10), [])
  t.same(await journal.latestOf('other', { topics: ['a'], since: 0, count: 10 }), [])
})

t.test('the floor never falls: what the journal may lack, it lacks for good', async (t) => {
  const journal = await start(0)
  for (const position of [9, 3]) journal.raiseFloor(position)
  t.equal(journal.floor(), 9)
})

t.test('a message that was read again keeps no other bytes of the store in memory', async (t) => {
  const { store } = createMemoryStore()
  const before = await openJournal(store)
  const head = Buffer.from('event')
  const message = { topic: 'a', qos: 1 as const, queue: { keep: 'every' as const } }
  const excerpt = { head, bytes: 5, title: null, artist: null }
  const payload = Buffer.from('payload')
  await store.commit(
    before.append(
      [
        { ...message, payload, refused: excerpt },
        { ...message, topic: 'b', payload },
      ],
      1,
    ).changes,
  )
  await store.commit(before.append([{ ...message, payload: Buffer.from('other') }], 1).changes)
  const journal = await openJournal({
    ...store,
    get: async (key) => {
      const value = await store.get(key)
      return value && received(value)
    },
    async *range(...of) {
      for await (const [key, value] of store.range(...of)) yield [key, received(value)]
    },
  })
  await journal.get(2)
  await journal.read(2, 3, 10)
  for (const [position, text] of ['payload', 'payload', 'other'].entries()) {
    const kept = journal.recent(position + 1)
    t.equal(kept?.payload.toString(), text)
    t.equal(kept?.payload.buffer.byteLength, text.length, `${text} alone`)
  }
  t.equal(journal.recent(1)?.refused?.head.toString(), 'event')
  t.equal(journal.recent(1)?.refused?.head.buffer.byteLength, 'event'.length)
  t.equal(journal.recent(1)?.payload, journal.recent(2)?.payload, 'a shared payload is there once')
})

t.test('a message of another node keeps no other bytes of the store in memory', async (t) => {
  const { store } = createMemoryStore()
  let tell: Parameters<typeof store.onOthers>[1] = () => undefined
  const journal = await openJournal({
    ...store,
    onOthers: (_prefix, listener) => {
      tell = listener
    },
  })
  const payload = Buffer.from('payload')
  const message = { qos: 1 as const, payload, queue: { keep: 'every' as const } }
  const told = appendChanges(
    ['a', 'b'].map((topic) => ({ ...message, topic })),
    1,
  ).filter((change) => 'put' in change && change.put === journalPrefix)
  for (const [nth, change] of told.entries()) {
    if ('value' in change) tell(journalKey(nth + 1), received(Buffer.from(change.value)))
  }
  t.equal(journal.recent(1)?.payload.toString(), 'payload')
  t.equal(journal.recent(1)?.payload.buffer.byteLength, payload.length)
  t.equal(journal.recent(1)?.payload, journal.recent(2)?.payload, 'a shared payload is there once')
})

t.test('sessions that return together read the store once', async (t) => {
  const { store } = createMemoryStore()
  const before = await openJournal(store)
  const total = 3_000
  for (let position = 1; position <= total; position++) {
    const message = {
      topic: 'a',
      payload: Buffer.from('x'),
      qos: 1 as const,
      queue: { keep: 'every' as const },
    }
    await store.commit(before.append([message], position).changes)
  }
  let reads = 0
  let atOnce = 0
  let mostAtOnce = 0
  const journal = await openJournal({
    ...store,
    async *range(...of) {
      reads++
      mostAtOnce = Math.max(mostAtOnce, ++atOnce)
      try {
        // Redis answers later.
        await new Promise(setImmediate)
        yield* store.range(...of)
      } finally {
        atOnce--
      }
    },
  })
  const readAll = async () => {
    const found: number[] = []
    for (let upTo = 0; upTo < total; ) {
      const page = await journal.read(upTo, total, 50)
      found.push(...page.entries.map(({ position }) => position))
      upTo = page.upTo
    }
    return found
  }
  const each = await Promise.all(Array.from({ length: 100 }, readAll))
  const all = Array.from({ length: total }, (_, index) => index + 1).join()
  for (const found of each) t.equal(found.join(), all)
  t.ok(reads <= 10, `${reads} reads`)
  t.equal(mostAtOnce, 1)
})

t.test('the newest reports behind a position, and how many more there were', async (t) => {
  const { reports, decide } = noteReports(0)
  for (let position = 1; position <= 10; position++) decide(position, position % 2 === 0)
  t.same(reports.after(0, 100), { found: [2, 4, 6, 8, 10], leftOut: 0 })
  t.same(reports.after(4, 100), { found: [6, 8, 10], leftOut: 0 })
  t.same(reports.after(5, 2), { found: [8, 10], leftOut: 1 })
  t.same(reports.after(10, 2), { found: [], leftOut: 0 })
  t.same(reports.after(99, 2), { found: [], leftOut: 0 })
})

t.test('of what was before the start it is not known how many there were', async (t) => {
  const { reports, decide } = noteReports(100)
  decide(101, true)
  t.same(reports.after(99, 10), { found: [101], leftOut: null })
  t.same(reports.after(100, 10), { found: [101], leftOut: 0 })
})

t.test('of a flood the newest are told, and the number of the others as long as it is known', async (t) => {
  const { reports, decide } = noteReports(0)
  for (let position = 1; position <= 60_000; position++) decide(position, true)
  t.same(reports.after(50_000, 3), { found: [59_998, 59_999, 60_000], leftOut: 9_997 })
  for (let position = 60_001; position <= 100_000; position++) decide(position, true)
  t.same(reports.after(34_464, 1), { found: [100_000], leftOut: 65_535 })
  t.same(reports.after(34_463, 1), { found: [100_000], leftOut: null })
})

function noteReports(head: number) {
  const reports = createRecentReports(head)
  return {
    reports,
    decide: (position: number, isReport: boolean) => isReport && reports.add(position),
  }
}
