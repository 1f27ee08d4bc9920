import { setImmediate as nextTurn } from 'node:timers/promises'
import pino from 'pino'
import t, { type Test } from 'tap'
import { openJournal } from '../../journal/journal.ts'
import { openReturnable } from '../../journal/returnable.ts'
import { noOthers } from '../../listener/shared-counts.ts'
import { createStreams, type StreamRequest } from '../../on-air/streams.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createSharedSpace } from '../shared-store.ts'
import { stall } from '../stall.ts'

/** Streams whose states are made by the test. */
async function openStreams(t: Test, ids: readonly string[], make: (id: string) => Promise<void>) {
  const store = createSharedSpace().openFollowed(t)
  const journal = await openJournal(store)
  const returnable = await openReturnable(store)
  store.start()
  let floor = 1
  let wake = () => {}
  let isHeld = false
  const streams = createStreams({
    journal: {
      ...journal,
      floor: () => floor,
      onEach(listener) {
        wake = () => listener(undefined as never, undefined as never)
        return journal.onEach((...given) => {
          if (!isHeld) listener(...given)
        })
      },
    },
    returnable,
    positionBefore: async () => journal.head(),
    parts: { of: async () => [], ahead: async () => [] },
    state: {
      async of(id) {
        await make(id)
        return Buffer.from(`state of ${id}\n`)
      },
    },
    livestreams: { find: () => undefined, ids: async () => ids },
    catchUp: store.catchUp,
    shared: noOthers,
    maxStreams: 100,
    isCutOff: () => false,
    clock: Date.now,
    log: pino({ level: 'silent' }),
    metrics: createMetrics(),
  })
  t.teardown(streams.close)

  return {
    async publish(livestream: string, text: string): Promise<void> {
      const message = {
        topic: `radio/${livestream}/track/playing`,
        stream: livestream,
        payload: Buffer.from(JSON.stringify({ text })),
        qos: 1 as const,
        queue: { keep: 'latest' as const },
      }
      const { changes, stored } = journal.append([message], Date.now())
      for (const { position, topic, qos } of stored(await store.commit(changes)))
        returnable.setLatest({ position, topic, qos })
    },

    checkRights: streams.checkRights,

    /** The streams learn of no message until the returned function is called, and then only of those from a position on. */
    hold(): (from: number) => void {
      isHeld = true
      return (from) => {
        floor = from
        isHeld = false
        wake()
      }
    },

    /** Opens the stream of a reader that reads at once. */
    open(wanted: Partial<StreamRequest> = {}) {
      let text = ''
      let hasEnded = false
      let wake = () => {}
      const client = {
        write(bytes: Buffer) {
          text += bytes
          wake()
          return true
        },
        paced: async () => undefined,
        end() {
          hasEnded = true
          wake()
        },
      }
      streams.open(client, {
        view: { key: '', isWhole: true, livestreams: undefined, allows: () => true },
        livestreams: undefined,
        delayMs: 0,
        after: undefined,
        mostBackMs: Infinity,
        holder: undefined,
        expiresAt: undefined,
        isStillUser: async () => true,
        ...wanted,
      })
      return {
        text: () => text,
        async ended(): Promise<void> {
          while (!hasEnded) await new Promise<void>((resolve) => (wake = resolve))
        },
        async until(part: string): Promise<void> {
          while (!text.includes(part)) await new Promise<void>((resolve) => (wake = resolve))
        },
      }
    },
  }
}

t.test('what comes while the state is made is not lost', async (t) => {
  const states = new Map<string, () => void>()
  const { publish, open } = await openStreams(t, ['a', 'b'], async (id) => {
    await new Promise<void>((resolve) => states.set(id, resolve))
  })
  const reader = open()
  while (!states.has('a')) await nextTurn()
  await publish('a', 'meanwhile')
  states.get('a')?.()
  while (!states.has('b')) await nextTurn()
  await publish('a', 'newer')
  states.get('b')?.()
  await reader.until('event: ready')
  await publish('a', 'live')
  await reader.until('live')
  t.match(reader.text(), /id: 2\ndata: .*newer.*\n\nevent: ready\nid: 2\n.*\n\n.*\nid: 3\ndata: .*live/)
})

t.test('the states of many readers leave room for others in each turn', async (t) => {
  const ids = Array.from({ length: 600 }, (_, nth) => `${nth}`)
  let work = 0
  const { open } = await openStreams(t, ids, async () => {
    stall(0.1)
    work++
  })
  const readers = Array.from({ length: 20 }, () => open())
  let most = 0
  while (readers.some((reader) => !reader.text().includes('ready'))) {
    const before = work
    await nextTurn()
    most = Math.max(most, work - before)
  }
  t.equal(work, 20 * 600)
  t.ok(most <= 100, `${most} livestreams in one turn`)
})

t.test('a right that ends while the state is made ends the stream there', async (t) => {
  const states = new Map<string, () => void>()
  let isStill = true
  const { publish, open, checkRights } = await openStreams(t, ['a', 'b'], async (id) => {
    await new Promise<void>((resolve) => states.set(id, resolve))
  })
  const reader = open({ holder: 'x', isStillUser: async () => isStill })
  while (!states.has('a')) await nextTurn()
  isStill = false
  checkRights('another')
  checkRights('x')
  await reader.ended()
  states.get('a')?.()
  const other = open()
  while (!states.has('b')) {
    await nextTurn()
    states.get('a')?.()
  }
  states.get('b')?.()
  await other.until('event: ready')
  await publish('a', 'live')
  await other.until('live')
  t.match(reader.text(), /^retry: \d+\n$/)
})

t.test('who is so slow that its place is gone is told, and gets the state once more', async (t) => {
  const { publish, open, hold } = await openStreams(t, ['a'], async () => undefined)
  const reader = open()
  await reader.until('event: ready')
  const release = hold()
  for (const text of ['one', 'two', 'three']) await publish('a', text)
  release(3)
  await reader.until('event: missed')
  await reader.until('id: 3')
  await publish('a', 'four')
  await reader.until('four')
  const [, after = ''] = reader.text().split('event: missed')
  t.match(after, /^\ndata: {}\n\nstate of a\nevent: ready\nid: 3\n/)
  t.notMatch(reader.text(), /one|two|three/)
})
