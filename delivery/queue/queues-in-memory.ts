import type { Journal } from '../../journal/journal.ts'
import { keyOf } from '../../store/commit.ts'
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
  takeFrom,
  takeLettersFrom,
} from './queue.ts'
import type { WorkItem } from './work-item.ts'
import { deadPrefix, decodeItem, decodeLetter, parseKey, readWork, workPrefix } from './work-records.ts'

export type QueuesInMemory = Awaited<ReturnType<typeof loadQueues>>

/**
 * Loads the queues into memory, and applies the commits of other nodes. The caller applies the commits of this node.
 *
 * Tells the journal which messages hold payloads of waiting items. Calls `heard` with every sequence in use. Calls
 * `appended` with the name of each queue to which another node adds an item.
 */
export async function loadQueues(
  store: Store,
  journal: Pick<Journal, 'neededByQueues'>,
  heard: (sequence: number) => void,
  appended: (queue: string, item: WorkItem) => void,
) {
  const { neededByQueues } = journal
  const queues = new Map<string, Queue>()
  const stored = await readWork(store)
  for (const [name, item] of stored.items) add(name, item)
  const letters = stored.deadLetters.sort(([, a], [, b]) => byGivingUp(a, b))
  for (const [name, letter] of letters) queueOf(name).dead.push(letter)
  for (const [, { sequence }] of [...stored.items, ...letters]) heard(sequence)
  takeFromOthers()

  return {
    queues,

    /** A queue, for reading only. Returns an empty queue if none has this name. */
    get: (name: string): Queue => queues.get(name) ?? emptyQueue(),

    /** A queue, for changing. Adds an empty queue if none has this name. */
    queueOf,

    add,
    take,

    takeLetters(name: string, letters: readonly { sequence: number }[]): void {
      const queue = queues.get(name)
      if (queue) takeLettersFrom(queue, sequencesOf(letters))
    },
  }

  function queueOf(name: string): Queue {
    const queue = queues.get(name) ?? emptyQueue()
    queues.set(name, queue)
    return queue
  }

  function add(name: string, item: WorkItem): void {
    addTo(queueOf(name), item)
    if (item.position > 0) neededByQueues.add(item.position)
  }

  function take(name: string, items: readonly { sequence: number }[]): void {
    const queue = queues.get(name)
    if (!queue) return
    for (const { position } of takeFrom(queue, sequencesOf(items)))
      if (position > 0) neededByQueues.remove(position)
  }

  function forgetEmpty(name: string, queue: Queue): void {
    if (isEmpty(queue) && queue.dropped + queue.stale === 0) queues.delete(name)
  }

  /** Applies the commits of other nodes, in the order of these commits. */
  function takeFromOthers(): void {
    store.onOthers(workPrefix, (change) => {
      const { queue: name, sequence } = parseKey(keyOf(change))
      const queue = queueOf(name)
      if ('put' in change) {
        const item = decodeItem(change.value)
        if (currentOf(queue, item)) {
          replaceIn(queue, item)
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
    store.onOthers(deadPrefix, (change) => {
      const { queue: name, sequence } = parseKey(keyOf(change))
      const queue = queueOf(name)
      takeLettersFrom(queue, new Set([sequence]))
      if ('put' in change) addLetterTo(queue, decodeLetter(change.value))
      else forgetEmpty(name, queue)
    })
  }
}
