import type { Journal } from '../../journal/journal.ts'
import { createLock, createLocks } from '../../store/lock.ts'
import type { NumberedNode } from '../../store/nodes/nodes.ts'
import { createSequences } from '../../store/nodes/sequences.ts'
import type { Change, Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { createAttemptedItems } from './attempted-items.ts'
import { createBeginning } from './beginning.ts'
import { createDeadLetters } from './dead-letters.ts'
import type { WorkLimits } from './limits.ts'
import { createNewItems } from './new-items.ts'
import { holds, isEmpty, lengthOf, type QueueLength, sequencesOf, type Waiting, waitingIn } from './queue.ts'
import { loadQueues, type QueuesInMemory } from './queues-in-memory.ts'
import { createRepeating } from './repeating.ts'
import { createTrimming, type IsBusy } from './trimming.ts'
import type { DeadLetter, NewWork, WorkItem } from './work-item.ts'
import { deadPrefix, readPayload, removal, workPrefix } from './work-records.ts'

export type WorkQueues = Awaited<ReturnType<typeof createWorkQueues>>

/**
 * Durable queues of work, on any store. Items are appended in the commit of the event they follow from. Each later
 * change of an item is stored before it counts. Reads come from memory, payloads from the journal or the store.
 */
export async function createWorkQueues(parts: {
  store: Store
  journal: Pick<Journal, 'get' | 'floor' | 'named'>
  nodes: NumberedNode
  /** Whether this node looks after a queue. */
  isOwn: (queue: string) => boolean
  clock: () => number
  /** The clock for the age of items. It ignores jumps ahead, which would give up a week of messages at once. */
  steadyClock: () => number
  limits: WorkLimits
  metrics: Pick<Metrics, 'workDropped'>
}) {
  const { store, journal, nodes, isOwn, clock, steadyClock, limits, metrics } = parts
  const { perQueue } = limits
  const locked = createQueueLocks()
  const inLock = await createLock(store, 'work-replays')
  let listener: (queue: string) => void = () => undefined
  const sequences = createSequences(clock, nodes)
  const inMemory = await loadQueues(store, journal, sequences.heard, grown)
  const { newItem, append } = createNewItems(sequences, clock)
  const shared = { store, journal, inMemory, payload, newItem, clock, perQueue, appended }
  const attempted = createAttemptedItems(shared)
  const deadLetters = createDeadLetters(shared)
  const trimming = createTrimming({
    ...{ store, inMemory, steadyClock, limits, metrics },
    giveUp: deadLetters.giveUp,
  })
  const tidy = locked(trimming.tidy)
  const dropExcess = locked(trimming.dropExcess)

  return {
    /** Calls back whenever a queue has a new item. */
    onAppended(callBack: (queue: string) => void): void {
      listener = callBack
    },

    /** The changes that store new work: once, however often the event is repeated. */
    plan: ({ groups, messageId, once }: NewWork): readonly Change[] =>
      groups.flatMap((group) => once(group.scope, () => append(group, messageId, show))),

    /** The items that can be next. */
    waiting: (name: string): Waiting => waitingIn(inMemory.get(name), clock()),

    /** Whether an event still waits in a queue, and behind which event. */
    holds: (name: string, messageId: string) => holds(inMemory.get(name), messageId),

    payload,

    // Changes of an item after an attempt.
    acknowledge: locked(attempted.acknowledge),
    postpone: locked(attempted.postpone),
    setAside: locked(attempted.setAside),

    // Items become dead letters, and dead letters items again.
    giveUp: locked(deadLetters.giveUp),
    giveUpAll: locked(deadLetters.giveUpAll),
    replay: locked(deadLetters.replay),

    // Messages of the journal become items, at the end of a queue or in front of a new one.
    repeat: locked(createRepeating({ ...shared, inLock })),
    begin: locked(createBeginning(shared)),

    /** Removes a queue with all it holds. The same commit stores `alongside`. */
    drop: locked((name: string, alongside?: readonly Change[]) => drop(store, inMemory, name, alongside)),

    /** The queues that hold something. */
    names: (): string[] => [...inMemory.queues].flatMap(([name, queue]) => (isEmpty(queue) ? [] : [name])),

    lengthOf: (name: string): QueueLength => lengthOf(inMemory.get(name)),

    /** How many items and dead letters this node has lost to the limits of their queues. */
    dropped: (): [queue: string, items: number][] =>
      [...inMemory.queues].flatMap(([name, { dropped }]) => (dropped > 0 ? [[name, dropped]] : [])),

    deadLetters: (name: string): readonly DeadLetter[] => inMemory.get(name).dead,

    /** Keeps every queue that this node looks after within its limits. */
    async tidy(isBusy: IsBusy, isClosed: (queue: string) => boolean = () => false): Promise<void> {
      for (const name of [...inMemory.queues.keys()].filter(isOwn)) await tidy(name, isBusy, isClosed)
    },
  }

  function show(name: string, item: WorkItem): void {
    inMemory.add(name, item)
    grown(name)
  }

  /** Called when a queue has a new item: drops items if there are too many. If that fails, the next item repeats it. */
  function grown(name: string): void {
    appended(name)
    const { inOrder, aside } = inMemory.get(name)
    const isFull = inOrder.length + aside.length > perQueue
    if (isFull && isOwn(name)) dropExcess(name).catch(() => undefined)
  }

  function appended(name: string): void {
    listener(name)
  }

  /** The payload of an item; undefined when it is not stored any more. */
  async function payload(name: string, item: WorkItem): Promise<Buffer | undefined> {
    if (item.position === 0) return readPayload(store, workPrefix, name, item)
    return (await journal.get(item.position))?.payload
  }
}

/** Makes a change wait for earlier changes of the same queue. The first argument of the change names the queue. */
function createQueueLocks() {
  const { hold } = createLocks()
  return <Of extends [queue: string, ...others: unknown[]], Result>(change: (...of: Of) => Promise<Result>) =>
    (...of: Of): Promise<Result> =>
      hold(of[0], () => change(...of))
}

/** Removes a queue with all it holds. Called under the lock of the queue. */
async function drop(
  store: Store,
  inMemory: QueuesInMemory,
  name: string,
  alongside: readonly Change[] = [],
): Promise<void> {
  const { queues, take, takeLetters } = inMemory
  const { inOrder, aside, dead } = inMemory.get(name)
  const items = [...inOrder, ...aside]
  await store.commit([
    ...items.map((item) => removal(workPrefix, name, item)),
    ...dead.map((letter) => removal(deadPrefix, name, letter)),
    ...alongside,
  ])
  take(name, items)
  takeLetters(name, dead)
  // Another node may have given up some of the items just before. This node has heard of their letters by now.
  const dropped = sequencesOf(items)
  const letters = inMemory.get(name).dead.filter(({ sequence }) => dropped.has(sequence))
  if (letters.length > 0) await store.commit(letters.map((letter) => removal(deadPrefix, name, letter)))
  takeLetters(name, letters)
  const queue = queues.get(name)
  if (queue && isEmpty(queue)) queues.delete(name)
}
