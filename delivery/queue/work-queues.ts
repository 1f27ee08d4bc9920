import type { Journal } from '../../journal/journal.ts'
import { createLock } from '../../store/lock.ts'
import type { NumberedNode } from '../../store/nodes/nodes.ts'
import { createSequences } from '../../store/nodes/sequences.ts'
import type { Change, Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { createAttemptedItems } from './attempted-items.ts'
import { createBeginning } from './beginning.ts'
import { createDeadLetters } from './dead-letters.ts'
import { lanesOf, waitingInLane } from './lanes.ts'
import type { WorkLimits } from './limits.ts'
import { createNewItems } from './new-items.ts'
import { createPassedOver } from './passed-over.ts'
import { holds, isEmpty, lengthOf, type QueueLength, sequencesOf, type Waiting, waitingIn } from './queue.ts'
import { createQueueLocks, type HeldQueue } from './queue-locks.ts'
import { loadQueues, type QueuesInMemory } from './queues-in-memory.ts'
import { createRepeating } from './repeating.ts'
import { createSharedItems } from './shared-items.ts'
import { sharedPrefix } from './shared-records.ts'
import { createTransitions, type Transitions, untilUnchanged } from './transitions.ts'
import { createTrimming, type IsBusy } from './trimming.ts'
import type { DeadLetter, NewWork, WorkItem } from './work-item.ts'
import { deadPrefix, readPayload, removal, workPrefix } from './work-records.ts'

export type WorkQueues = Awaited<ReturnType<typeof createWorkQueues>>

/**
 * Durable queues of items to deliver. The commit of an event also stores its items. Each later change of an item is
 * stored first, and then made in memory.
 */
export async function createWorkQueues(parts: {
  store: Store
  journal: Pick<Journal, 'get' | 'floor' | 'neededByQueues'>
  nodes: NumberedNode
  /** Whether this node works off a queue and keeps the queue within its limits. */
  isOwn: (queue: string) => boolean
  clock: () => number
  /** Clock for the age of items. A clock that jumps ahead would turn all items into dead letters. */
  steadyClock: () => number
  limits: WorkLimits
  metrics: Pick<Metrics, 'workDropped' | 'deliveriesStale'>
}) {
  const { store, journal, nodes, isOwn, clock, steadyClock, limits, metrics } = parts
  const { perQueue } = limits
  const locked = createQueueLocks()
  const inLock = await createLock(store, 'work-replays')
  let listener: (queue: string, item?: WorkItem) => void = () => undefined
  const sequences = createSequences(clock, nodes)
  const sharedItems = createSharedItems({ store, neededByQueues: journal.neededByQueues })
  const inMemory = await loadQueues(store, journal, sharedItems, sequences.heard, grown)
  const transitions = createTransitions({ inMemory, sharedItems })
  const { newItem, append } = createNewItems(sequences, sharedItems, clock)
  const shared = { store, journal, inMemory, transitions, payload, newItem, clock, perQueue, appended }
  const attempted = createAttemptedItems(shared)
  const deadLetters = createDeadLetters(shared)
  const trimming = createTrimming({
    store,
    inMemory,
    transitions,
    steadyClock,
    limits,
    metrics,
    giveUp: deadLetters.giveUp,
  })
  const tidy = locked(trimming.tidy)
  const dropExcess = locked(trimming.dropExcess)

  return {
    /** Calls back whenever a queue has a new item. Without the item, there may be several. */
    onAppended(callBack: (queue: string, item?: WorkItem) => void): void {
      listener = callBack
    },

    /** The changes that store the items of an event. A repetition stores no item twice. */
    plan: ({ groups, messageId, once }: NewWork): readonly Change[] =>
      groups.flatMap((group) => once(group.scope, () => append(group, messageId, show))),

    /** The items of a queue from which the hub chooses its next attempt. */
    waiting: (name: string): Waiting => waitingIn(inMemory.get(name), clock()),

    /** The same for one lane of a queue. `isBlocked`: its first item waits for items of other lanes. */
    waitingInLane: (name: string, lane: string) => waitingInLane(inMemory.get(name), lane, clock()),

    /** The lanes of a queue that have items. */
    lanes: (name: string): ReadonlySet<string> => lanesOf(inMemory.get(name)),

    holds: (name: string, messageId: string) => holds(inMemory.get(name), messageId),

    payload,

    // Changes of an item by an attempt.
    noteAttempt: locked(attempted.noteAttempt),
    forgetAttempt: locked(attempted.forgetAttempt),
    acknowledge: locked(attempted.acknowledge),
    postpone: locked(attempted.postpone),
    setAside: locked(attempted.setAside),

    /** All items that wait in a queue. */
    items: (name: string): readonly WorkItem[] => {
      const { inOrder, aside } = inMemory.get(name)
      return [...inOrder, ...aside]
    },

    /** All items that wait in any queue. One that waits alike in several comes once. */
    *everyItem(): Generator<WorkItem> {
      yield* sharedItems.waiting()
      for (const { inOrder, aside } of inMemory.queues.values()) {
        for (const item of inOrder) if (!item.isShared) yield item
        yield* aside
      }
    },

    /** Removes items that are not worth delivering any more. */
    passOver: locked(createPassedOver({ store, inMemory, transitions, metrics })),

    // Items become dead letters, and dead letters become items again.
    giveUp: locked(deadLetters.giveUp),
    giveUpAll: locked(deadLetters.giveUpAll),
    replay: locked(deadLetters.replay),

    // Messages of the journal become items: `repeat` puts them last, `begin` puts them first in a new queue.
    repeat: locked(createRepeating({ ...shared, inLock })),
    begin: locked(createBeginning(shared)),

    /** Removes a queue with all its items and dead letters. The same commit stores `alongside`. */
    drop: locked((name: HeldQueue, alongside?: readonly Change[]) =>
      untilUnchanged(() => drop({ store, inMemory, transitions }, name, alongside)),
    ),

    /** The names of all queues that have items or dead letters. */
    names: (): string[] => [...inMemory.queues].flatMap(([name, queue]) => (isEmpty(queue) ? [] : [name])),

    lengthOf: (name: string): QueueLength => lengthOf(inMemory.get(name)),

    /** How many items and dead letters this node has dropped from each queue. */
    dropped: (): [queue: string, items: number][] =>
      [...inMemory.queues].flatMap(([name, { dropped }]) => (dropped > 0 ? [[name, dropped]] : [])),

    /** How many items this node has passed over in each queue, because they were not worth delivering any more. */
    stale: (): [queue: string, items: number][] =>
      [...inMemory.queues].flatMap(([name, { stale }]) => (stale > 0 ? [[name, stale]] : [])),

    deadLetters: (name: string): readonly DeadLetter[] => inMemory.get(name).dead,

    /** Brings every queue that this node works off back within its limits. */
    async tidy(isBusy: IsBusy, isClosed: (queue: string) => boolean = () => false): Promise<void> {
      for (const name of [...inMemory.queues.keys()].filter(isOwn)) await tidy(name, isBusy, isClosed)
      if (isOwn(sharedPrefix)) await sharedItems.sweep()
    },
  }

  function show(name: string, item: WorkItem): void {
    inMemory.add(name, item)
    grown(name, item)
  }

  /**
   * Announces a new item of a queue. If this node works the queue off, also drops the oldest items above the limit. If
   * this drop fails, the next new item starts another one.
   */
  function grown(name: string, item: WorkItem): void {
    appended(name, item)
    const { inOrder, aside } = inMemory.get(name)
    const isFull = inOrder.length + aside.length > perQueue
    if (isFull && isOwn(name)) dropExcess(name).catch(() => undefined)
  }

  function appended(name: string, item?: WorkItem): void {
    listener(name, item)
  }

  /** The payload of an item. Undefined: the payload is no longer stored. */
  async function payload(name: string, item: WorkItem): Promise<Buffer | undefined> {
    if (item.position === 0) return readPayload(store, workPrefix, name, item)
    return (await journal.get(item.position))?.payload
  }
}

async function drop(
  parts: { store: Store; inMemory: QueuesInMemory; transitions: Transitions },
  name: HeldQueue,
  alongside: readonly Change[] = [],
): Promise<void> {
  const { store, inMemory, transitions } = parts
  const { queues, takeLetters } = inMemory
  const { inOrder, aside, dead } = inMemory.get(name)
  const items = [...inOrder, ...aside]
  const { changes, apply } = transitions.removing(name, items)
  await store.commit([...changes, ...dead.map((letter) => removal(deadPrefix, name, letter)), ...alongside])
  apply()
  takeLetters(name, dead)
  // Another node may have just turned some of these items into dead letters. The commit above has resolved, so this
  // node has received these letters. Remove them too.
  const dropped = sequencesOf(items)
  const letters = inMemory.get(name).dead.filter(({ sequence }) => dropped.has(sequence))
  if (letters.length > 0) await store.commit(letters.map((letter) => removal(deadPrefix, name, letter)))
  takeLetters(name, letters)
  const queue = queues.get(name)
  if (queue && isEmpty(queue)) queues.delete(name)
}
