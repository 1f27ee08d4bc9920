import type { Journal } from '../../journal/journal.ts'
import { type Change, ConditionFailed, type Store } from '../../store/store.ts'
import {
  decodeSet,
  decodeShared,
  placeChange,
  placeKeys,
  placeRemoval,
  readShared,
  setIdOf,
  setPrefix,
  setRemoval,
  sharedChanges,
  sharedPrefix,
  sharedRemoval,
  usedPrefix,
} from './shared-records.ts'
import type { WorkItem } from './work-item.ts'

export type SharedItems = ReturnType<typeof createSharedItems>

/** An item that waits in queues without records of their own. */
interface SharedItem {
  item: WorkItem
  set: string
  /** In how many queues it waits so. */
  waiting: number
}

/** The queues of shared items. */
interface QueueSet {
  queues: readonly string[]
  /** How many items have it. */
  items: number
  /** Position of the last of them. 0: none that this node knows of. */
  used: number
  /** It is being removed: who needs it stores it again. */
  isLeaving: boolean
}

/** One commit removes at most so many records. */
const mostRemoved = 500

/**
 * Items that wait alike in several queues have one record for all of them: `work-shared/{position}`. The set of its
 * queues is stored once for all items with the same queues: `work-set/{id}`.
 *
 * Each queue has a place, which only rises: `work-place/{queue}`. A shared item waits in a queue of its set as long as
 * the place of the queue is before its position. What happens to the item in one queue alone raises the place of this
 * queue. The items up to there that go on waiting get records of their own: see `createTransitions`. So an item never
 * waits in a queue twice, and no record says that it does not wait.
 */
export function createSharedItems(parts: {
  store: Store
  neededByQueues: Pick<Journal['neededByQueues'], 'add' | 'remove'>
}) {
  const { store, neededByQueues } = parts
  const byPosition = new Map<number, SharedItem>()
  const sets = new Map<string, QueueSet>()
  const places = new Map<string, number>()
  const idsOf = new WeakMap<readonly string[], string>()
  /** The load has found all items up to this position that were still stored. */
  let loadedUpTo = 0

  return {
    /** Reads the stored items. Returns each with the queues in which it waits so, in the order of positions. */
    async load(): Promise<{ item: WorkItem; queues: readonly string[] }[]> {
      loadedUpTo = await store.lastNumber()
      const stored = await readShared(store)
      for (const [queue, place] of stored.places) places.set(queue, place)
      for (const [id, queues] of stored.sets) noteSet(id, queues).used = stored.used.get(id) ?? 0
      return stored.items.flatMap(({ item, set }) => {
        const queues = note(item, set)
        return queues.length > 0 ? [{ item, queues }] : []
      })
    },

    /** The changes that store a new item for message `nth` of the same commit. */
    plan(queues: readonly string[], item: WorkItem, nth: number): Change[] {
      const id = idOf(queues)
      const known = sets.get(id)
      const isKnown = known !== undefined && !known.isLeaving
      return sharedChanges({ id, queues: known?.queues ?? sortedOf(queues), isKnown }, item, nth)
    },

    /** Notes a new item whose commit has taken effect. Returns the item for the memory of its queues. */
    add(queues: readonly string[], item: WorkItem): WorkItem {
      const id = idOf(queues)
      const set = noteSet(id, sets.get(id)?.queues ?? sortedOf(queues))
      set.isLeaving = false
      const shared: WorkItem = { ...item, isShared: true }
      // No place is behind a new position.
      note(shared, id, queues)
      return shared
    },

    /**
     * The change that raises the place of a queue, and what follows in memory. The commit fails if another node has
     * changed the place meanwhile.
     */
    raise(queue: string, to: number): { change: Change; apply: () => void } {
      const before = placeOf(queue)
      const place = Math.max(before, to)
      return { change: placeChange(queue, before, place), apply: () => void places.set(queue, place) }
    },

    /** A shared item waits in one of its queues no more, or has a record of its own there. */
    release,

    /** All shared items that wait. */
    *waiting(): Generator<WorkItem> {
      for (const { item, waiting } of byPosition.values()) if (waiting > 0) yield item
    },

    /**
     * Applies the commits of other nodes. `appended`: an item is to wait in these queues. `passed`: the place of a queue
     * was raised.
     */
    follow(heard: {
      appended: (item: WorkItem, queues: readonly string[]) => void
      passed: (queue: string, place: number) => void
    }): void {
      store.onOthers(setPrefix, (key, value) => {
        const id = key.slice(setPrefix.length)
        if (value) noteSet(id, decodeSet(value))
        else sets.delete(id)
      })
      store.onOthers(usedPrefix, (key, value) => {
        const set = sets.get(key.slice(usedPrefix.length))
        if (set && value) set.used = Number(value)
      })
      store.onOthers(sharedPrefix, (key, value) => {
        if (!value) return forget(Number(key.slice(sharedPrefix.length)))
        const { item, set } = decodeShared(key, value)
        // After the load, commits are heard whose items the load has found already, or found removed.
        const isLoaded = item.position <= loadedUpTo || byPosition.has(item.position)
        if (!isLoaded) heard.appended(item, note(item, set))
      })
      store.onOthers(placeKeys.prefix, (key, value) => {
        const queue = placeKeys.nameOf(key)
        if (!value) return void places.delete(queue)
        places.set(queue, Number(value))
        heard.passed(queue, Number(value))
      })
    },

    /** Removes what no queue needs any more: items, then the sets and places that only these items needed. */
    async sweep(): Promise<void> {
      const over = [...byPosition.values()].filter(({ waiting }) => waiting === 0)
      for (let from = 0; from < over.length; from += mostRemoved) {
        const portion = over.slice(from, from + mostRemoved).map(({ item }) => item.position)
        await store.commit(portion.map(sharedRemoval))
        for (const position of portion) forget(position)
      }
      await removeUnusedSets()
      await removePassedPlaces()
    },
  }

  /** Notes an item. Returns the queues in which it waits so. */
  function note(item: WorkItem, id: string, queues = queuesBefore(item.position, id)): readonly string[] {
    const { position } = item
    const set = sets.get(id)
    if (set) {
      set.items++
      set.used = Math.max(set.used, position)
    }
    byPosition.set(position, { item, set: id, waiting: queues.length })
    if (queues.length > 0) neededByQueues.add(position)
    return queues
  }

  function release(position: number): void {
    const shared = byPosition.get(position)
    if (!shared || shared.waiting === 0) return
    shared.waiting--
    if (shared.waiting === 0) neededByQueues.remove(position)
  }

  function forget(position: number): void {
    const shared = byPosition.get(position)
    if (!shared) return
    byPosition.delete(position)
    if (shared.waiting > 0) neededByQueues.remove(position)
    const set = sets.get(shared.set)
    if (set) set.items--
  }

  function noteSet(id: string, queues: readonly string[]): QueueSet {
    const set = sets.get(id) ?? { queues, items: 0, used: 0, isLeaving: false }
    sets.set(id, set)
    return set
  }

  /** The queues of a set whose places are before a position. */
  function queuesBefore(position: number, id: string): readonly string[] {
    return (sets.get(id)?.queues ?? []).filter((queue) => placeOf(queue) < position)
  }

  function placeOf(queue: string): number {
    return places.get(queue) ?? 0
  }

  function idOf(queues: readonly string[]): string {
    const known = idsOf.get(queues)
    if (known !== undefined) return known
    const id = setIdOf(sortedOf(queues))
    idsOf.set(queues, id)
    return id
  }

  /**
   * Removes the sets of no item. An event that is accepted meanwhile does not lose its set. If its commit comes first, on
   * whichever node, the removal fails: the set was used. If it comes later, it stores the set again; on another node,
   * which does not know of the removal yet, it fails, and is planned again.
   */
  async function removeUnusedSets(): Promise<void> {
    const unused = [...sets].filter(([, { items }]) => items === 0)
    for (const [, set] of unused) set.isLeaving = true
    try {
      await store.commit(unused.flatMap(([id, { used }]) => setRemoval(id, used)))
      for (const [id, set] of unused) if (set.items === 0 && sets.get(id) === set) sets.delete(id)
    } catch (error) {
      // After other errors, the sets may be gone: who needs one stores it again.
      if (!(error instanceof ConditionFailed)) throw error
      for (const [, set] of unused) set.isLeaving = false
    }
  }

  /** Removes the places that are before all shared items: without one, a queue has all of them. */
  async function removePassedPlaces(): Promise<void> {
    const first = [...byPosition.keys()].reduce((least, position) => Math.min(least, position), Infinity)
    const passed = [...places].filter(([, place]) => place < first)
    for (let from = 0; from < passed.length; from += mostRemoved) {
      const portion = passed.slice(from, from + mostRemoved)
      try {
        await store.commit(portion.map(([queue, place]) => placeRemoval(queue, place)))
      } catch (error) {
        // One of these queues goes on: the next sweep tries again.
        if (!(error instanceof ConditionFailed)) throw error
        continue
      }
      for (const [queue, place] of portion) if (places.get(queue) === place) places.delete(queue)
    }
  }
}

function sortedOf(queues: readonly string[]): readonly string[] {
  return [...queues].sort()
}
