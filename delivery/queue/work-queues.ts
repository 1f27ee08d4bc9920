import type { Journal } from '../../journal/journal.ts'
import { createLock, createLocks } from '../../store/lock.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import { createSequences } from '../../store/nodes/sequences.ts'
import { type Change, ConditionFailed, type Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { inBatches } from './batches.ts'
import { createBeginning } from './beginning.ts'
import type { WorkLimits } from './limits.ts'
import {
  addLetterTo,
  beyondLimit,
  bySequence,
  currentOf,
  emptyQueue,
  firstAside,
  firstDue,
  holds,
  isEmpty,
  isSame,
  itemsIn,
  lengthOf,
  type QueueLength,
  replaceIn,
  sequencesOf,
} from './queue.ts'
import { loadQueues } from './queues-in-memory.ts'
import { createReplays } from './replays.ts'
import type { Attempt, DeadLetter, EarlierMessage, NewWork, WorkGroup, WorkItem } from './work-item.ts'
import {
  deadLetterChange,
  deadPrefix,
  itemChange,
  namingChange,
  readPayload,
  removal,
  workPrefix,
} from './work-records.ts'

/** Attempts an item remembers. */
const maxAttempts = 20
/** To give up a portion while other nodes remove some of it. */
const maxTries = 3
export type WorkQueues = Awaited<ReturnType<typeof createWorkQueues>>

/** Whether the item is on its way at this moment. */
type IsBusy = (queue: string, item: WorkItem) => boolean

/**
 * Durable queues of work, on any store. Items are appended in the commit of the event they follow from;
 * whatever happens to them afterwards is stored before it counts. Reads come from memory, payloads from the journal or
 * the store.
 */
export async function createWorkQueues(parts: {
  store: Store
  journal: Pick<Journal, 'get' | 'floor' | 'named'>
  nodes: Pick<Nodes, 'isShared' | 'slot'>
  /** Whether this node looks after a queue. */
  isOwn: (queue: string) => boolean
  clock: () => number
  /** Time that ages what waits: like `clock`, but no jump ahead gives up a week of messages at once. */
  steadyClock: () => number
  limits: WorkLimits
  metrics: Pick<Metrics, 'workDropped'>
}) {
  const { store, journal, nodes, isOwn, clock, steadyClock, limits, metrics } = parts
  let appended: (queue: string) => void = () => undefined
  const sequences = createSequences(clock, nodes.slot)
  const inMemory = await loadQueues(store, journal, sequences.heard, (queue) => {
    appended(queue)
    keepToLimit(queue)
  })
  const { queues, queueOf, take, takeLetters } = inMemory
  const inTurn = createLocks().hold
  const adding = {
    ...{ store, journal, inMemory, newItem, perQueue: limits.perQueue },
    appended: (queue: string) => appended(queue),
  }
  const inLock = await createLock(store, 'work-replays')
  const replays = createReplays({ ...adding, nodes, inLock })
  const begin = createBeginning(adding)
  /** Of what another node may remove. */
  const stillThere = nodes.isShared ? 'present' : undefined

  return {
    /** Calls back whenever a queue has a new item. */
    onAppended(listener: (queue: string) => void): void {
      appended = listener
    },

    /** What to store so that this work is done once, however often the event is repeated. */
    plan(work: NewWork): readonly Change[] {
      const owed = work.groups.filter(({ items }) => items.length > 0)
      return owed.flatMap((group) => work.once(group.scope, () => append(group, work.messageId)))
    },

    /** The next item of the line, the one behind it, and the one aside whose time came first. */
    waiting(name: string): { head?: WorkItem; second?: WorkItem; due?: WorkItem } {
      const queue = queues.get(name) ?? emptyQueue()
      const [head, second] = queue.line
      const due = firstDue(queue, clock())
      return { ...(head && { head }), ...(second && { second }), ...(due && { due }) }
    },

    /** Of the items that stepped aside the one whose time comes first. */
    nextAside: (name: string): WorkItem | undefined => firstAside(queues.get(name)?.aside ?? []),

    /** Whether an event still waits in a queue; if it does in the line, the event it waits behind. */
    holds: (name: string, messageId: string) => holds(queues.get(name) ?? emptyQueue(), messageId),

    /** What an item carries; undefined when it is not stored any more. */
    payload,

    /** The item is done, even if it was given up meanwhile. `alongside` is stored with it. */
    acknowledge: (name: string, item: WorkItem, alongside: readonly Change[] = []): Promise<void> =>
      inTurn(name, async () => {
        const queue = queues.get(name) ?? emptyQueue()
        const letters = currentOf(queue, item) ? [] : queue.dead.filter((letter) => isSame(letter, item))
        const removals = letters.map((letter) => removal(deadPrefix, name, letter))
        await store.commit([removal(workPrefix, name, item), ...removals, ...alongside])
        take(name, [item])
        takeLetters(name, letters)
      }),

    /** The item was tried in vain. With `asideUntil` it steps out of the line, or stays out of it, until then. */
    postpone: (
      name: string,
      item: WorkItem,
      attempt: Attempt,
      how: { refused: boolean; asideUntil?: number },
      alongside: readonly Change[] = [],
    ): Promise<void> =>
      inTurn(name, () =>
        change(name, item, alongside, (now) => ({
          ...now,
          tries: now.tries + 1,
          refusals: now.refusals + (how.refused ? 1 : 0),
          attempts: [...now.attempts, attempt].slice(-maxAttempts),
          ...(how.asideUntil !== undefined && { asideUntil: how.asideUntil }),
        })),
      ),

    /** Steps out of the line without having been tried again. */
    setAside: (name: string, item: WorkItem, asideUntil: number): Promise<void> =>
      inTurn(name, () => change(name, item, [], (now) => ({ ...now, asideUntil }))),

    /** Gives items up: they are listed and can be replayed. */
    giveUp: (name: string, items: readonly WorkItem[], reason: string): Promise<void> =>
      inTurn(name, () => giveUp(name, items, reason)),

    /** Gives up everything that waits in a queue, oldest first. */
    giveUpAll: (name: string, reason: string): Promise<number> =>
      inTurn(name, async () => {
        const { line, aside } = queues.get(name) ?? emptyQueue()
        const items = [...line, ...aside]
        await giveUp(name, items, reason)
        return items.length
      }),

    /** Puts dead letters at the end of the line again, all or one; how many. */
    replay: (name: string, messageId?: string): Promise<number> =>
      inTurn(name, () => replays.letters(name, messageId)),

    /** Puts what was accepted earlier at the end of the line once more: see `replays.ts`. */
    repeat: (
      name: string,
      earlier: readonly EarlierMessage[],
      first: (count: number) => Promise<void>,
    ): Promise<number> => inTurn(name, () => replays.earlier(name, earlier, first)),

    /** Puts what it begins with in front of a queue from which nothing is sent yet: see `beginning.ts`. */
    begin: (name: string, earlier: readonly EarlierMessage[], beginning: Change): Promise<void> =>
      inTurn(name, () => begin(name, earlier, beginning)),

    /** Removes a queue with all it holds. `alongside` is stored with it. */
    drop: (name: string, alongside: readonly Change[] = []): Promise<void> =>
      inTurn(name, async () => {
        const { line, aside, dead } = queues.get(name) ?? emptyQueue()
        const items = [...line, ...aside]
        await store.commit([
          ...items.map((item) => removal(workPrefix, name, item)),
          ...dead.map((letter) => removal(deadPrefix, name, letter)),
          ...alongside,
        ])
        take(name, items)
        takeLetters(name, dead)
        // Another node may have given up some just before, and this one has heard of it.
        const dropped = sequencesOf(items)
        const letters = (queues.get(name)?.dead ?? []).filter(({ sequence }) => dropped.has(sequence))
        if (letters.length > 0) await store.commit(letters.map((letter) => removal(deadPrefix, name, letter)))
        takeLetters(name, letters)
        const queue = queues.get(name)
        if (queue && isEmpty(queue)) queues.delete(name)
      }),

    /** The queues that hold something. */
    names: (): string[] => [...queues].flatMap(([name, queue]) => (isEmpty(queue) ? [] : [name])),

    lengthOf: (name: string): QueueLength => lengthOf(queues.get(name) ?? emptyQueue()),

    /** Items that this node has lost to the limits of their queues. */
    dropped: (): [queue: string, items: number][] =>
      [...queues].flatMap(([name, { dropped }]) => (dropped > 0 ? [[name, dropped]] : [])),

    deadLetters: (name: string): readonly DeadLetter[] => queues.get(name)?.dead ?? [],

    /** Keeps every queue within its limits, oldest first. */
    async tidy(isBusy: IsBusy, isClosed: (queue: string) => boolean = () => false): Promise<void> {
      for (const name of [...queues.keys()].filter(isOwn)) {
        await inTurn(name, async () => {
          const now = steadyClock()
          const { line, aside } = queues.get(name) ?? emptyQueue()
          const old = [...line, ...aside].filter(({ enqueuedAt }) => enqueuedAt + limits.ageMs <= now)
          const free = old.filter((item) => !isBusy(name, item))
          await giveUp(name, free, 'it waited longer than items are kept')
          await dropExcess(name)
          const { dead } = queues.get(name) ?? emptyQueue()
          // What a closed queue had to give up are its last ones.
          const excess = isClosed(name) ? 0 : dead.length - limits.deadLettersPerQueue
          const expired = dead.filter(({ givenUpAt }, index) => {
            return index < excess || Date.parse(givenUpAt) + limits.deadLetterAgeMs <= now
          })
          await forgetLetters(name, expired)
        })
      }
    },
  }

  /** New items as they are stored, and how they become visible. */
  function append({ content, items }: WorkGroup, messageId: string) {
    const added = items.map(({ queue, details }) => ({ queue, item: newItem(messageId, details) }))
    return {
      changes: added.map(({ queue, item }) =>
        'nth' in content ? namingChange(queue, item, content.nth) : itemChange(queue, item, content.payload),
      ),
      show(first: number) {
        const position = 'nth' in content ? first + content.nth : 0
        for (const { queue: name, item } of added) {
          inMemory.add(name, { ...item, position })
          appended(name)
          keepToLimit(name)
        }
      },
    }
  }

  /** Of a queue that this node looks after. Should it fail, the next item tries again. */
  function keepToLimit(name: string): void {
    const { line, aside } = queueOf(name)
    const isFull = line.length + aside.length > limits.perQueue
    if (isFull && isOwn(name)) inTurn(name, () => dropExcess(name)).catch(() => undefined)
  }

  function newItem(messageId: string, details: WorkItem['details']): WorkItem {
    const [sequence, enqueuedAt] = [sequences.next(), clock()]
    return { position: 0, sequence, messageId, details, enqueuedAt, tries: 0, refusals: 0, attempts: [] }
  }

  async function payload(name: string, item: WorkItem): Promise<Buffer | undefined> {
    if (item.position === 0) return readPayload(store, workPrefix, name, item)
    return (await journal.get(item.position))?.payload
  }

  // What follows is called in the turn of its queue.

  /** Puts what `next` makes of an item in its place, unless it has gone meanwhile. */
  async function change(
    name: string,
    item: WorkItem,
    alongside: readonly Change[],
    next: (now: WorkItem) => WorkItem,
  ): Promise<void> {
    const own = item.position === 0 ? await payload(name, item) : undefined
    const queue = queues.get(name) ?? emptyQueue()
    const now = currentOf(queue, item)
    const changed = now && next(now)
    if (!changed) return stored(alongside)
    try {
      await store.commit([itemChange(name, changed, own, stillThere), ...alongside])
    } catch (error) {
      if (!(error instanceof ConditionFailed)) throw error
      // Another node is done with it: it must not come back.
      return stored(alongside)
    }
    replaceIn(queue, changed)
  }

  async function stored(changes: readonly Change[]): Promise<void> {
    await store.commit(changes)
  }

  async function giveUp(name: string, items: readonly WorkItem[], reason: string): Promise<void> {
    const givenUpAt = new Date(clock()).toISOString()
    const all = itemsIn(queues.get(name) ?? emptyQueue(), sequencesOf(items)).sort(bySequence)
    for await (const portion of inBatches(all, (item) => payload(name, item))) {
      const payloads = new Map(portion.map(([{ sequence }, payload]) => [sequence, payload]))
      await giveUpPortion(name, payloads, { givenUpAt, reason }, maxTries)
    }
  }

  async function giveUpPortion(
    name: string,
    payloads: ReadonlyMap<number, Buffer | undefined>,
    why: Pick<DeadLetter, 'givenUpAt' | 'reason'>,
    tries: number,
  ): Promise<void> {
    const waiting = itemsIn(queues.get(name) ?? emptyQueue(), new Set(payloads.keys())).sort(bySequence)
    const letters = waiting.map(({ position: _named, ...item }) => ({ ...item, ...why }))
    try {
      await store.commit([
        ...waiting.map((item) => removal(workPrefix, name, item, stillThere)),
        ...letters.map((letter) => deadLetterChange(name, letter, payloads.get(letter.sequence))),
      ])
    } catch (error) {
      if (!(error instanceof ConditionFailed) || tries === 1) throw error
      // Another node is done with some, or has removed the queue, and this one has heard of it.
      return giveUpPortion(name, payloads, why, tries - 1)
    }
    take(name, waiting)
    const queue = queueOf(name)
    for (const letter of letters) addLetterTo(queue, letter)
  }

  async function dropExcess(name: string): Promise<void> {
    const excess = beyondLimit(queues.get(name) ?? emptyQueue(), limits.perQueue)
    if (excess.length === 0) return
    await store.commit(excess.map((item) => removal(workPrefix, name, item)))
    take(name, excess)
    countDropped(name, excess.length)
  }

  async function forgetLetters(name: string, letters: readonly DeadLetter[]): Promise<void> {
    if (letters.length === 0) return
    await store.commit(letters.map((letter) => removal(deadPrefix, name, letter)))
    takeLetters(name, letters)
    countDropped(name, letters.length)
  }

  function countDropped(name: string, count: number): void {
    queueOf(name).dropped += count
    metrics.workDropped.inc(count)
  }
}
