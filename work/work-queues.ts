import type { Change, Store } from '../store/store.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createBodies } from './bodies.ts'
import {
  emptyQueue,
  lengthOf,
  type Queue,
  type QueueLength,
  replaceIn,
  takeFrom,
  takeLettersFrom,
} from './queue.ts'
import { createRepetitions, repetitionKey } from './repetitions.ts'
import type { Attempt, DeadLetter, NewWork, PlannedWork, WorkItem } from './work-item.ts'
import {
  bodyChange,
  bodyRemoval,
  deadLetterChange,
  deadLetterRemoval,
  itemChange,
  itemRemoval,
  readWork,
} from './work-records.ts'

/** How much a queue may hold. */
export interface WorkLimits {
  /** Items of one queue. */
  perQueue: number
  /** Age at which an item is given up, milliseconds. */
  ageMs: number
  deadLettersPerQueue: number
  deadLetterAgeMs: number
}

export const workLimits = {
  ageMs: 7 * 24 * 3_600_000, // design.md §10
  deadLettersPerQueue: 1_000,
  deadLetterAgeMs: 30 * 24 * 3_600_000,
} as const

/** Attempts an item remembers. */
const maxAttempts = 20

export type WorkQueues = Awaited<ReturnType<typeof createWorkQueues>>

/**
 * Durable queues of work, on any store. Items are appended in the commit of the event they follow from;
 * whatever happens to them afterwards is stored before it counts. Reads come from memory.
 */
export async function createWorkQueues(parts: {
  store: Store
  clock: () => number
  limits: WorkLimits
  metrics: Pick<Metrics, 'workDropped'>
}) {
  const { store, clock, limits, metrics } = parts
  const queues = new Map<string, Queue>()
  const bodies = createBodies(store)
  const repetitions = await createRepetitions({ store, clock })
  let lastSequence = 0
  let appended: (queue: string) => void = () => undefined
  await load()

  return {
    /** Calls back whenever a queue has a new item. */
    onAppended(listener: (queue: string) => void): void {
      appended = listener
    },

    /** What to store so that this work is done once, however often the event is repeated. */
    plan(work: NewWork): PlannedWork {
      const body = nextSequence()
      const claims = work.groups
        .filter(({ items }) => items.length > 0)
        .map(({ scope, items }) => {
          const key = repetitionKey(work.fingerprint, scope)
          return { key, claim: repetitions.claim(key, () => append(items, work, body)) }
        })
      return {
        changes: claims.flatMap(({ claim }) => claim?.changes ?? []),
        stored() {
          for (const { key, claim } of claims) if (claim) repetitions.stored(key, claim)
        },
        failed() {
          for (const { key, claim } of claims) if (claim) repetitions.failed(key, claim)
        },
      }
    },

    /** The next item of the line, the one behind it, and the first of those aside whose time has come. */
    waiting(name: string): { head?: WorkItem; second?: WorkItem; due?: WorkItem } {
      const { line, aside } = queues.get(name) ?? emptyQueue()
      const [head, second] = line
      const due = aside.find(({ asideUntil = 0 }) => asideUntil <= clock())
      return { ...(head && { head }), ...(second && { second }), ...(due && { due }) }
    },

    /** When the next item that stepped aside is due, milliseconds since the epoch. */
    nextDue(name: string): number | undefined {
      const times = queues.get(name)?.aside.map(({ asideUntil = 0 }) => asideUntil) ?? []
      return times.length > 0 ? Math.min(...times) : undefined
    },

    /** What an item carries; undefined when it is not stored any more. */
    body: (item: WorkItem): Promise<Buffer | undefined> => bodies.read(item.body),

    /** The item is done. `alongside` is stored with it. */
    async acknowledge(name: string, item: WorkItem, alongside: readonly Change[] = []): Promise<void> {
      await commit([itemRemoval(name, item), ...alongside])
      take(name, [item], true)
    },

    /** The item was tried in vain. With `asideUntil` it steps out of the line, or stays out of it, until then. */
    async postpone(
      name: string,
      item: WorkItem,
      attempt: Attempt,
      how: { refused: boolean; asideUntil?: number },
      alongside: readonly Change[] = [],
    ): Promise<WorkItem> {
      const { asideUntil = item.asideUntil } = how
      const tried: WorkItem = {
        ...item,
        tries: item.tries + 1,
        refusals: item.refusals + (how.refused ? 1 : 0),
        attempts: [...item.attempts, attempt].slice(-maxAttempts),
        ...(asideUntil !== undefined && { asideUntil }),
      }
      await commit([itemChange(name, tried), ...alongside])
      replaceIn(queueOf(name), item, tried)
      return tried
    },

    /** Steps out of the line without having been tried again. */
    async setAside(name: string, item: WorkItem, asideUntil: number): Promise<void> {
      const moved = { ...item, asideUntil }
      await commit([itemChange(name, moved)])
      replaceIn(queueOf(name), item, moved)
    },

    /** Gives items up: they are listed and can be replayed. */
    giveUp,

    /** Gives up everything that waits in a queue. */
    async giveUpAll(name: string, reason: string): Promise<number> {
      const { line, aside } = queues.get(name) ?? emptyQueue()
      const items = [...line, ...aside]
      await giveUp(name, items, reason)
      return items.length
    },

    /** Puts dead letters at the end of the line again, all or one; how many. */
    async replay(name: string, messageId?: string): Promise<number> {
      const queue = queues.get(name)
      const letters = (queue?.dead ?? []).filter(
        (letter) => messageId === undefined || letter.messageId === messageId,
      )
      const items = letters.map(({ messageId, details, body }) => newItem(messageId, details, body))
      await commit([
        ...letters.map((letter) => deadLetterRemoval(name, letter)),
        ...items.map((item) => itemChange(name, item)),
      ])
      if (!queue || items.length === 0) return 0
      takeLetters(name, letters, false)
      queue.line.push(...items)
      appended(name)
      return items.length
    },

    /** Removes a queue with all it holds. `alongside` is stored with it. */
    async drop(name: string, alongside: readonly Change[] = []): Promise<void> {
      const { line, aside, dead } = queues.get(name) ?? emptyQueue()
      const items = [...line, ...aside]
      await commit([
        ...items.map((item) => itemRemoval(name, item)),
        ...dead.map((letter) => deadLetterRemoval(name, letter)),
        ...alongside,
      ])
      take(name, items, true)
      takeLetters(name, dead, true)
      const queue = queues.get(name)
      if (queue && queue.line.length + queue.aside.length + queue.dead.length === 0) queues.delete(name)
    },

    names: (): string[] => [...queues.keys()],

    lengthOf: (name: string): QueueLength => lengthOf(queues.get(name) ?? emptyQueue()),

    deadLetters: (name: string): readonly DeadLetter[] => queues.get(name)?.dead ?? [],

    /** Keeps every queue within its limits, oldest first. `isBusy`: the item is on its way at this moment. */
    async tidy(isBusy: (queue: string, item: WorkItem) => boolean): Promise<void> {
      const now = clock()
      for (const [name, queue] of [...queues]) {
        const waiting = [...queue.line, ...queue.aside]
        const old = waiting.filter(({ enqueuedAt }) => enqueuedAt + limits.ageMs <= now)
        const free = old.filter((item) => !isBusy(name, item))
        await giveUp(name, free, 'it waited longer than items are kept')
        const excess = queue.dead.length - limits.deadLettersPerQueue
        const expired = queue.dead.filter(({ givenUpAt }, index) => {
          return index < excess || Date.parse(givenUpAt) + limits.deadLetterAgeMs <= now
        })
        await forgetLetters(name, expired)
      }
      await commit([])
      await repetitions.forget()
    },
  }

  async function load(): Promise<void> {
    const stored = await readWork(store)
    for (const [name, item] of stored.items) {
      const queue = queueOf(name)
      if (item.asideUntil === undefined) queue.line.push(item)
      else queue.aside.push(item)
      lastSequence = Math.max(lastSequence, item.sequence)
    }
    for (const [name, letter] of stored.deadLetters) queueOf(name).dead.push(letter)
    const all = [...stored.items, ...stored.deadLetters].map(([, item]) => item)
    bodies.hold(all)
    bodies.findOrphans(stored.bodies)
  }

  /** New items as they are stored, and how they become visible. */
  function append(
    items: NewWork['groups'][number]['items'],
    { messageId, body: bytes }: NewWork,
    body: number,
  ) {
    const added = items.map(({ queue, details }) => ({ queue, item: newItem(messageId, details, body) }))
    // The first one may be on its way.
    const lost = added.flatMap(({ queue }) => {
      const { line = [] } = queues.get(queue) ?? {}
      const oldest = line.length >= limits.perQueue ? line[1] : undefined
      return oldest ? [{ queue, item: oldest }] : []
    })
    return {
      changes: [
        bodyChange(body, bytes),
        ...added.map(({ queue, item }) => itemChange(queue, item)),
        ...lost.map(({ queue, item }) => itemRemoval(queue, item)),
      ],
      show() {
        bodies.keep(body, bytes)
        bodies.hold(added.map(({ item }) => item))
        for (const { queue, item } of lost) {
          if (take(queue, [item], true) === 0) continue
          queueOf(queue).dropped++
          metrics.workDropped.inc()
        }
        for (const { queue, item } of added) {
          queueOf(queue).line.push(item)
          appended(queue)
        }
      },
    }
  }

  function newItem(messageId: string, details: WorkItem['details'], body: number): WorkItem {
    const sequence = nextSequence()
    return { sequence, messageId, details, body, enqueuedAt: clock(), tries: 0, refusals: 0, attempts: [] }
  }

  /** From the clock, so that sequences go on rising after a restart. */
  function nextSequence(): number {
    lastSequence = Math.max(lastSequence + 1, clock() * sequencesPerMs)
    return lastSequence
  }

  async function giveUp(name: string, items: readonly WorkItem[], reason: string): Promise<void> {
    if (items.length === 0) return
    const givenUpAt = new Date(clock()).toISOString()
    const letters = items.map((item): DeadLetter => ({ ...item, givenUpAt, reason }))
    await commit([
      ...items.map((item) => itemRemoval(name, item)),
      ...letters.map((letter) => deadLetterChange(name, letter)),
    ])
    take(name, items, false)
    queueOf(name).dead.push(...letters)
  }

  async function forgetLetters(name: string, letters: readonly DeadLetter[]): Promise<void> {
    if (letters.length === 0) return
    await commit(letters.map((letter) => deadLetterRemoval(name, letter)))
    takeLetters(name, letters, true)
  }

  /** Stores changes, and removes bodies that became unused on the way. */
  async function commit(changes: readonly Change[]): Promise<void> {
    const unused = bodies.takeUnused()
    try {
      await store.commit([...unused.map(bodyRemoval), ...changes])
    } catch (error) {
      bodies.putBack(unused)
      throw error
    }
  }

  function queueOf(name: string): Queue {
    const known = queues.get(name)
    if (known) return known
    const queue = emptyQueue()
    queues.set(name, queue)
    return queue
  }

  /**
   * Takes items out of memory; how many. One that is gone already (its queue was dropped meanwhile) has let go
   * of its body before.
   */
  function take(name: string, items: readonly WorkItem[], release: boolean): number {
    const queue = queues.get(name)
    if (!queue) return 0
    const taken = takeFrom(queue, new Set(items.map(({ sequence }) => sequence)))
    if (release) bodies.release(taken)
    return taken.length
  }

  function takeLetters(name: string, letters: readonly DeadLetter[], release: boolean): void {
    const queue = queues.get(name)
    if (!queue) return
    const taken = takeLettersFrom(queue, letters)
    if (release) bodies.release(taken)
  }
}

const sequencesPerMs = 4096
