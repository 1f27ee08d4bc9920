import { mock } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Entry } from '../../journal/entry.ts'
import { openJournal } from '../../journal/journal.ts'
import { follow } from '../../on-air/follow.ts'
import { createSharedSpace } from '../shared-store.ts'

t.test('messages that wait for their time are read once', async (t) => {
  const { journal, publish } = await open(t)
  let reads = 0
  const counted = {
    ...journal,
    read: (...given: Parameters<typeof journal.read>) => {
      reads++
      return journal.read(...given)
    },
  }
  for (let nth = 0; nth < 20; nth++) await publish(Date.now() + nth * 5)
  const { handedOn } = start(t, { journal: counted, delayMs: 20 })
  await handedOn(20)
  t.ok(reads <= 2, `${reads} reads`)
})

t.test('nothing waits for a clock that was set back', async (t) => {
  const { journal, publish } = await open(t)
  await publish(Date.now() + 3_600_000)
  const { handedOn } = start(t, { journal, delayMs: 10 })
  await handedOn(1)
})

t.test('an answer that comes late keeps its place between the messages of others', async (t) => {
  const space = createSharedSpace()
  const [a, b] = [await open(t, space), await open(t, space)]
  const [atA, atB] = [start(t, { ...a, delayMs: 0 }), start(t, { ...b, delayMs: 0 })]
  await b.publish(1)
  a.store.lag()
  const late = a.publish(2)
  await b.publish(3)
  await atB.handedOn(3)
  a.store.restore()
  await Promise.all([late, a.publish(4)])
  await Promise.all([atA.handedOn(4), atB.handedOn(4)])
  for (const { positions } of [atA, atB]) t.same(positions(), [1, 2, 3, 4])
})

t.test('who is behind the journal hears that it missed something, and goes on', async (t) => {
  const { journal, publish } = await open(t)
  for (const at of [1, 2, 3]) await publish(at)
  journal.raiseFloor(3)
  let missed = 0
  const { handedOn, positions } = start(t, { journal, delayMs: 0, missed: () => missed++ })
  await handedOn(1)
  t.same([positions(), missed], [[3], 1])
})

t.test('a read that fails is repeated after a second', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const { journal, publish } = await open(t)
  await publish(1)
  let reads = 0
  const faulty = {
    ...journal,
    read: (...given: Parameters<typeof journal.read>) =>
      ++reads === 1 ? Promise.reject(new Error('the store has failed')) : journal.read(...given),
  }
  const { handedOn, positions } = await new Promise<ReturnType<typeof start>>((resolve) => {
    const started = start(t, { journal: faulty, delayMs: 0, failed: () => resolve(started) })
  })
  await nextTurn()
  t.same([reads, positions()], [1, []])
  mock.timers.tick(1_000)
  await handedOn(1)
})

t.test('who leaves during a read leaves no timer, and hears of no fault', async (t) => {
  const { journal, publish } = await open(t)
  await publish(Date.now())
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  for (const isFaulty of [false, true]) {
    let answer = () => {}
    const isAnswered = new Promise<void>((resolve) => {
      answer = resolve
    })
    const slow = {
      ...journal,
      async read(...given: Parameters<typeof journal.read>) {
        await isAnswered
        if (isFaulty) throw new Error('the store has failed')
        return journal.read(...given)
      },
    }
    const before = timers()
    const { end, positions } = start(t, { journal: slow, delayMs: 300_000 })
    end()
    answer()
    await nextTurn()
    t.equal(timers(), before)
    t.same(positions(), [])
  }
})

async function open(t: Test, space = createSharedSpace()) {
  const store = space.openFollowed(t)
  const journal = await openJournal(store)
  store.start()
  return {
    store,
    journal,
    async publish(at: number): Promise<void> {
      const { changes, stored } = journal.append(
        [{ topic: 'radio/x/data', payload: Buffer.from('{}'), qos: 1, queue: { keep: 'latest' } }],
        at,
      )
      stored(await store.commit(changes))
    },
  }
}

type Parts = Parameters<typeof follow>[0]
type Following = Pick<Parts, 'journal' | 'delayMs'> & Partial<Pick<Parts, 'missed' | 'failed'>>

/** Follows a journal from its beginning. */
function start(t: Test, parts: Following) {
  const entries: Entry[] = []
  let wake = () => {}
  const following = follow({
    clock: Date.now,
    from: 0,
    deliver(entry) {
      entries.push(entry)
      wake()
      return undefined
    },
    missed: () => t.fail('nothing is missed'),
    failed: (error) => t.fail(String(error)),
    ...parts,
  })
  t.teardown(following.end)
  return {
    end: following.end,
    positions: () => entries.map(({ position }) => position),
    /** Resolves when so many messages were handed on. */
    async handedOn(count: number): Promise<void> {
      while (entries.length < count) await new Promise<void>((resolve) => (wake = resolve))
    },
  }
}
