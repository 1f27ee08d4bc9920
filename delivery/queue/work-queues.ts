import { createLocks } from '../../store/lock.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import { createSequences } from '../../store/nodes/sequences.ts'
import { type Change, ConditionFailed, type Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { WorkLimits } from './limits.ts'
import { createMirror } from './mirror.ts'
import {
  addLetterTo,
  beyondLimit,
  bySequence,
  currentOf,
  emptyQueue,
  firstAside,
  firstDue,
  isSame,
  itemsIn,
  lengthOf,
  type QueueLength,
  replaceIn,
  sequencesOf,
} from './queue.ts'
import type { Attempt, DeadLetter, NewWork, WorkItem } from './work-item.ts'
import {
  bodyChange,
  bodyRemoval,
  deadLetterChange,
  deadLetterRemoval,
  eachOnce,
  itemChange,
  itemRemoval,
} from './work-records.ts'

/** Attempts an item remembers. */
const maxAttempts = 20
/** Items of a long queue that one commit changes: others wait for it. */
const commitItems = 500
/** For a replay while other nodes replay from the same queue. */
const maxReplays = 3

export type WorkQueues = Awaited<ReturnType<typeof createWorkQueues>>

/** Whether the item is on its way at this moment. */
type IsBusy = (queue: string, item: WorkItem) => boolean

/**
 * Durable queues of work, on any store. Items are appended in the commit of the event they follow from;
 * whatever happens to them afterwards is stored before it counts. Reads come from memory.
 */
export async function createWorkQueues(parts: {
  store: Store
  nodes: Nodes
  /** Whether this node looks after a queue. */
  isOwn: (queue: string) => boolean
  clock: () => number
  /** Time that ages what waits: like `clock`, but no jump ahead gives up a week of messages at once. */
  steadyClock: () => number
  limits: WorkLimits
  metrics: Pick<Metrics, 'workDropped'>
}) {
  const { store, nodes, isOwn, clock, steadyClock, limits, metrics } = parts
  let appended: (queue: string) => void = () => undefined
  const sequences = createSequences(clock, nodes.slot)
  const mirror = await createMirror(store, sequences.heard, (queue) => {
    appended(queue)
    keepToLimit(queue)
  })
  const { queues, bodies, queueOf, take, takeLetters } = mirror
  const inTurn = createLocks().hold
  /** Of what another node may remove. */
  const stillThere = nodes.isShared ? 'present' : undefined

  return {
    /** Calls back whenever a queue has a new item. */
    onAppended(listener: (queue: string) => void): void {
      appended = listener
    },

    /** What to store so that this work is done once, however often the event is repeated. */
    plan(work: NewWork): readonly Change[] {
      const body = sequences.next()
      const owed = work.groups.filter(({ items }) => items.length > 0)
      return eachOnce(owed.flatMap(({ scope, items }) => work.once(scope, () => append(items, work, body))))
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

    /** What an item carries; undefined when it is not stored any more. */
    body: (item: WorkItem): Promise<Buffer | undefined> => bodies.read(item.body),

    /** The item is done, even if it was given up meanwhile. `alongside` is stored with it. */
    acknowledge: (name: string, item: WorkItem, alongside: readonly Change[] = []): Promise<void> =>
      inTurn(name, async () => {
        const queue = queues.get(name) ?? emptyQueue()
        const letters = currentOf(queue, item) ? [] : queue.dead.filter((letter) => isSame(letter, item))
        const removals = letters.map((letter) => deadLetterRemoval(name, letter))
        await commit([itemRemoval(name, item), ...removals, ...alongside])
        take(name, [item], true)
        takeLetters(name, letters, true)
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
        const items = [...line, ...aside].sort(bySequence)
        for (let from = 0; from < items.length; from += commitItems) {
          await giveUp(name, items.slice(from, from + commitItems), reason)
        }
        return items.length
      }),

    /** Puts dead letters at the end of the line again, all or one; how many. */
    replay: (name: string, messageId?: string): Promise<number> =>
      inTurn(name, () => replay(name, messageId)),

    /** Removes a queue with all it holds. `alongside` is stored with it. */
    drop: (name: string, alongside: readonly Change[] = []): Promise<void> =>
      inTurn(name, async () => {
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
      }),

    /** The queues that hold something. */
    names: (): string[] =>
      [...queues].flatMap(([name, { line, aside, dead }]) =>
        line.length + aside.length + dead.length > 0 ? [name] : [],
      ),

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
      await commit([])
      bodies.confirmSuspects(nodes.isLeader())
    },
  }

  /** New items as they are stored, and how they become visible. */
  function append(
    items: NewWork['groups'][number]['items'],
    { messageId, body: bytes }: NewWork,
    body: number,
  ) {
    const added = items.map(({ queue, details }) => ({ queue, item: newItem(messageId, details, body) }))
    return {
      changes: [bodyChange(body, bytes), ...added.map(({ queue, item }) => itemChange(queue, item))],
      show() {
        bodies.keep(body, bytes)
        bodies.hold(added.map(({ item }) => item))
        for (const { queue: name, item } of added) {
          queueOf(name).line.push(item)
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

  function newItem(messageId: string, details: WorkItem['details'], body: number): WorkItem {
    const sequence = sequences.next()
    return { sequence, messageId, details, body, enqueuedAt: clock(), tries: 0, refusals: 0, attempts: [] }
  }

  // What follows is called in the turn of its queue.

  /** Puts what `next` makes of an item in its place, unless it has gone meanwhile. */
  async function change(
    name: string,
    item: WorkItem,
    alongside: readonly Change[],
    next: (now: WorkItem) => WorkItem,
  ): Promise<void> {
    const queue = queues.get(name) ?? emptyQueue()
    const now = currentOf(queue, item)
    const changed = now && next(now)
    if (!changed) return commit(alongside)
    try {
      await commit([itemChange(name, changed, stillThere), ...alongside])
    } catch (error) {
      if (!(error instanceof ConditionFailed)) throw error
      // Another node is done with it: it must not come back.
      return commit(alongside)
    }
    replaceIn(queue, changed)
  }

  async function giveUp(name: string, items: readonly WorkItem[], reason: string): Promise<void> {
    const waiting = itemsIn(queues.get(name) ?? emptyQueue(), sequencesOf(items)).sort(bySequence)
    if (waiting.length === 0) return
    const givenUpAt = new Date(clock()).toISOString()
    const letters = waiting.map((item): DeadLetter => ({ ...item, givenUpAt, reason }))
    await commit([
      ...waiting.map((item) => itemRemoval(name, item)),
      ...letters.map((letter) => deadLetterChange(name, letter)),
    ])
    take(name, waiting, false)
    const queue = queueOf(name)
    for (const letter of letters) addLetterTo(queue, letter)
  }

  async function replay(name: string, messageId: string | undefined, tries = maxReplays): Promise<number> {
    const { dead } = queues.get(name) ?? emptyQueue()
    const letters = dead.filter((letter) => messageId === undefined || letter.messageId === messageId)
    if (letters.length === 0) return 0
    const items = letters.map(
      ({ messageId, details, body, acceptedAt, enqueuedAt }): WorkItem => ({
        ...newItem(messageId, details, body),
        acceptedAt: acceptedAt ?? enqueuedAt,
      }),
    )
    try {
      await commit([
        ...letters.map((letter) => deadLetterRemoval(name, letter, stillThere)),
        ...items.map((item) => itemChange(name, item)),
      ])
    } catch (error) {
      if (!(error instanceof ConditionFailed) || tries === 1) throw error
      // Another node has replayed or removed one of them, and this one has heard of it.
      return replay(name, messageId, tries - 1)
    }
    takeLetters(name, letters, false)
    // Only now: without its letters the queue may have been forgotten meanwhile.
    const queue = queueOf(name)
    queue.line = [...queue.line, ...items]
    appended(name)
    return items.length
  }

  async function dropExcess(name: string): Promise<void> {
    const excess = beyondLimit(queues.get(name) ?? emptyQueue(), limits.perQueue)
    if (excess.length === 0) return
    await commit(excess.map((item) => itemRemoval(name, item)))
    take(name, excess, true)
    countDropped(name, excess.length)
  }

  async function forgetLetters(name: string, letters: readonly DeadLetter[]): Promise<void> {
    if (letters.length === 0) return
    await commit(letters.map((letter) => deadLetterRemoval(name, letter)))
    takeLetters(name, letters, true)
    countDropped(name, letters.length)
  }

  function countDropped(name: string, count: number): void {
    queueOf(name).dropped += count
    metrics.workDropped.inc(count)
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
}
