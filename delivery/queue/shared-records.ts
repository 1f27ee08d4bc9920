import { createHash } from 'node:crypto'
import { digitsOf } from '../../store/commit.ts'
import { namedKeys, storeKeys } from '../../store/keys.ts'
import type { Change, Store } from '../../store/store.ts'
import type { StoredItem, WorkItem } from './work-item.ts'
import { storedOf } from './work-records.ts'

/* The records of items that wait in several queues: see `createSharedItems`. */

export const sharedPrefix = storeKeys.workShared.prefix
export const setPrefix = storeKeys.workSet.prefix
export const usedPrefix = storeKeys.workSetUsed.prefix
export const placeKeys = namedKeys(storeKeys.workPlace)

/** The id of a set of queues: the same for the same queues, on every node. `queues`: sorted. */
export function setIdOf(queues: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(queues)).digest('base64url')
}

/**
 * The changes that store an item for message `nth` of the same commit. `known`: the set is stored already. Then the
 * commit fails if another node has removed the set meanwhile.
 */
export function sharedChanges(
  set: { id: string; queues: readonly string[]; isKnown: boolean },
  item: WorkItem,
  nth: number,
): Change[] {
  const { tries: _0, refusals: _none, attempts: _empty, ...stored } = storedOf(item)
  const { id, queues, isKnown } = set
  return [
    isKnown
      ? { check: setPrefix + id, when: 'present', onlyOthers: true }
      : { put: setPrefix + id, value: JSON.stringify(queues) },
    { put: usedPrefix + id, value: '', numbered: { nth, at: 'value' } },
    {
      put: sharedPrefix,
      value: JSON.stringify({ ...stored, set: id }),
      numbered: { nth, at: 'key' },
    },
  ]
}

/** The change that removes the record of an item which waits in no queue any more. */
export function sharedRemoval(position: number): Change {
  return { del: sharedPrefix + digitsOf(position) }
}

/** The changes that remove a set. They fail if the set was used for an item after position `used`. */
export function setRemoval(id: string, used: number): Change[] {
  const last = used === 0 ? 'absent' : { value: digitsOf(used) }
  return [{ check: usedPrefix + id, when: last }, { del: setPrefix + id }, { del: usedPrefix + id }]
}

/** The change that raises the place of a queue. It fails if another node has changed the place meanwhile. */
export function placeChange(queue: string, before: number, place: number): Change {
  return {
    put: placeKeys.keyOf(queue),
    value: digitsOf(place),
    when: before === 0 ? 'absent' : { value: digitsOf(before) },
    onlyOthers: true,
  }
}

export function placeRemoval(queue: string, place: number): Change {
  return { del: placeKeys.keyOf(queue), when: { value: digitsOf(place) } }
}

export function decodeShared(key: string, value: Buffer): { item: WorkItem; set: string } {
  const { set, ...stored }: Omit<StoredItem, 'tries' | 'refusals' | 'attempts'> & { set: string } =
    JSON.parse(value.toString())
  const position = Number(key.slice(sharedPrefix.length))
  const untried = { tries: 0, refusals: 0, attempts: [] }
  return { item: { position, seen: performance.now(), ...stored, ...untried, isShared: true }, set }
}

export function decodeSet(value: Buffer): readonly string[] {
  return JSON.parse(value.toString())
}

/** Reads all shared items, in the order of their positions, with the sets and places that they need. */
export async function readShared(store: Store) {
  // The order matters: what is read later may be later by some commits of other nodes. A place that is too low is raised
  // by the change that is heard soon.
  const places = new Map<string, number>()
  for await (const [key, value] of store.range(placeKeys.prefix))
    places.set(placeKeys.nameOf(key), Number(value))
  const items: { item: WorkItem; set: string }[] = []
  for await (const [key, value] of store.range(sharedPrefix)) items.push(decodeShared(key, value))
  const sets = new Map<string, readonly string[]>()
  for await (const [key, value] of store.range(setPrefix))
    sets.set(key.slice(setPrefix.length), decodeSet(value))
  const used = new Map<string, number>()
  for await (const [key, value] of store.range(usedPrefix))
    used.set(key.slice(usedPrefix.length), Number(value))
  return { places, items, sets, used }
}
