import type { Journal } from '../../journal/journal.ts'
import type { Store } from '../../store/store.ts'
import {
  addLetterTo,
  addTo,
  byGivingUp,
  currentOf,
  emptyQueue,
  isEmpty,
  type Queue,
  replaceIn,
  sequencesOf,
  sharedUpTo,
  takeFrom,
  takeLettersFrom,
} from './queue.ts'
import type { SharedItems } from './shared-items.ts'
import type { WorkItem } from './work-item.ts'
import { deadPrefix, decodeItem, decodeLetter, parseKey, readWork, workPrefix } from './work-records.ts'

export type QueuesInMemory = Awaited<ReturnType<typeof loadQueues>>

/**
 * Loads the queues into memory, and applies the commits of other nodes. The caller applies the commits of this node.
 *
 * Tells the journal which messages hold payloads of items with a record of their own. Calls `heard` with every sequence in use. Calls
 * `appended` with the name of each queue to which another node adds an item.
 */
export async function loadQueues(
  store: Store,
  journal: Pick<Journal, 'neededByQueues'>,
  sharedItems: Pick<SharedItems, 'load' | 'follow' | 'release'>,
  heard: (sequence: number) => void,
  appended: (queue: string, item: WorkItem) => void,
) {
  const { neededByQueues } = journal
  const queues = new Map<string, Queue>()
  const shared = await sharedItems.load()
  const stored = await readWork(store)
  addLoaded(shared, stored.items)
  const letters = stored.deadLetters.sort(([, a], [, b]) => byGivingUp(a, b))
  for (const [name, letter] of letters) queueOf(name).dead.push(letter)
  for (const [, { sequence }] of [...stored.items, ...letters]) heard(sequence)
  for (const { item } of shared) heard(item.sequence)
  takeFromOthers()

  return {
    queues,

    /** A queue, for reading only. Returns an empty queue if none has this name. */
    get: (name: string): Queue => queues.get(name) ?? emptyQueue(),

    /** A queue, for changing. Adds an empty queue if none has this name. */
    queueOf,

    add,
    take,
    replace,

    takeLetters(name: string, letters: readonly { sequence: number }[]): void {
      const queue = queues.get(name)
      if (queue) takeLettersFrom(queue, sequencesOf(letters))
    },
  }

  function queueOf(name: string): Queue {
    const known = queues.get(name)
    if (known) return known
    const queue = emptyQueue()
    queues.set(name, queue)
    return queue
  }

  function add(name: string, item: WorkItem): void {
    addTo(queueOf(name), item)
    if (item.position > 0 && !item.isShared) neededByQueues.add(item.position)
  }

  /**
   * Adds what a start has found. Items that were made when their messages were accepted stand in the order of their
   * positions: the node that accepted a message may not have heard of the one before, and has given it a lower sequence.
   */
  function addLoaded(
    shared: readonly { item: WorkItem; queues: readonly string[] }[],
    own: readonly (readonly [queue: string, item: WorkItem])[],
  ): void {
    const owned = new Map<string, { items: WorkItem[]; added: number; sequences: Set<number> }>()
    for (const [name, item] of own) {
      const of = owned.get(name) ?? { items: [], added: 0, sequences: new Set() }
      of.items.push(item)
      of.sequences.add(item.sequence)
      owned.set(name, of)
    }
    for (const of of owned.values()) of.items = inOrderOfAcceptance(of.items)
    const addBefore = (name: string, { position, sequence }: Pick<WorkItem, 'position' | 'sequence'>) => {
      const of = owned.get(name)
      for (let next = of?.items[of.added]; of && next; next = of.items[++of.added]) {
        if (isOfAcceptance(next) ? next.position > position : next.sequence > sequence) return
        add(name, next)
      }
    }
    for (const { item, queues: names } of shared) {
      for (const name of names) {
        addBefore(name, item)
        // Another node has given the item a record of its own meanwhile.
        if (owned.get(name)?.sequences.has(item.sequence)) sharedItems.release(item.position)
        else add(name, item)
      }
    }
    for (const name of owned.keys()) addBefore(name, { position: Infinity, sequence: Infinity })
  }

  /** Replaces an item by its changed state, which has a record of its own. */
  function replace(name: string, changed: WorkItem): void {
    const queue = queueOf(name)
    const before = currentOf(queue, changed)
    replaceIn(queue, changed)
    if (!before?.isShared) return
    neededByQueues.add(changed.position)
    sharedItems.release(before.position)
  }

  function take(name: string, items: readonly { sequence: number }[]): void {
    const queue = queues.get(name)
    if (!queue) return
    for (const { position, isShared } of takeFrom(queue, sequencesOf(items))) {
      if (isShared) sharedItems.release(position)
      else if (position > 0) neededByQueues.remove(position)
    }
  }

  function forgetEmpty(name: string, queue: Queue): void {
    if (isEmpty(queue) && queue.dropped + queue.stale === 0) queues.delete(name)
  }

  /** Applies the commits of other nodes, in the order of these commits. */
  function takeFromOthers(): void {
    sharedItems.follow({
      appended(item, names) {
        heard(item.sequence)
        for (const name of names) {
          add(name, item)
          appended(name, item)
        }
      },
      passed(name, place) {
        const queue = queues.get(name)
        if (!queue) return
        take(name, sharedUpTo(queue, place))
        forgetEmpty(name, queue)
      },
    })
    store.onOthers(workPrefix, (key, value) => {
      const { queue: name, sequence } = parseKey(key)
      const queue = queueOf(name)
      if (value) {
        const item = decodeItem(value)
        if (currentOf(queue, item)) {
          replace(name, item)
          return
        }
        heard(sequence)
        add(name, item)
        appended(name, item)
        return
      }
      take(name, [{ sequence }])
      forgetEmpty(name, queue)
    })
    store.onOthers(deadPrefix, (key, value) => {
      const { queue: name, sequence } = parseKey(key)
      const queue = queueOf(name)
      takeLettersFrom(queue, new Set([sequence]))
      if (value) addLetterTo(queue, decodeLetter(value))
      else forgetEmpty(name, queue)
    })
  }
}

/** Whether an item was made in the commit that has accepted its message. Positions rise in the order of commits. */
function isOfAcceptance({ position, acceptedAt }: WorkItem): boolean {
  return position > 0 && acceptedAt === undefined
}

/** Puts these items into the order of their positions. The others keep their places in `items`. */
function inOrderOfAcceptance(items: readonly WorkItem[]): WorkItem[] {
  const accepted = items.filter(isOfAcceptance).sort((a, b) => a.position - b.position)
  let next = 0
  return items.map((item) => (isOfAcceptance(item) ? (accepted[next++] ?? item) : item))
}
