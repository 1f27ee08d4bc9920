import { setImmediate as nextTurn } from 'node:timers/promises'
import { foldExternalId } from './external-id.ts'
import type { Livestream } from './livestream.ts'

/**
 * Livestreams in shared memory, with the indexes of `Livestreams`. Another thread makes them and hands them over without
 * copying. Neither taking them nor the garbage collector takes the event loop any time, however many they are.
 */
export interface Packed {
  size: number
  /** The livestreams as JSON. */
  texts: Texts
  id: PackedIndex
  externalId: PackedIndex
  folded: PackedIndex
  /** Which institutions have livestreams, and which publishers of theirs (`ownerKey`). Each key stands there once. */
  institution: PackedIndex
  owner: PackedIndex
}

/** Texts in UTF-8, one after the other. `ends[n]`: where text `n` ends. */
interface Texts {
  bytes: Uint8Array
  ends: Uint32Array
}

/** Keys in the order of their bytes, each with the number of its livestream. Equal keys: in the order of the feed. */
interface PackedIndex {
  keys: Texts
  numbers: Uint32Array
}

/** A livestream to pack. `isName`: it is found by its external id only. */
type Packable = Livestream & { isName?: true | undefined }

/** Packs livestreams. Takes a second for 50,000: not for the thread of events. */
export function pack(livestreams: readonly Packable[]): Packed {
  return {
    size: livestreams.length,
    texts: packTexts(livestreams.map((livestream) => Buffer.from(JSON.stringify(livestream)))),
    id: packIndex(eachOf(livestreams, ({ id, isName }) => (isName ? undefined : id))),
    externalId: packIndex(eachOf(livestreams, ({ externalId }) => externalId)),
    folded: packIndex(eachOf(livestreams, ({ externalId }) => foldExternalId(externalId))),
    institution: packIndex(eachFirst(livestreams, ({ institution }) => institution.id)),
    owner: packIndex(
      eachFirst(livestreams, ({ publisher, institution }) => ownerKey(publisher.id, institution.id)),
    ),
  }
}

/** Unpacks all livestreams at once: not for the thread of events. */
export function* unpackAll<One extends Livestream>(packed: Packed): Generator<One> {
  const unpack = createUnpack<One>(packed)
  for (let number = 0; number < packed.size; number++) yield unpack(number)
}

function ownerKey(publisherId: string, institutionId: string): string {
  return `${publisherId} ${institutionId}`
}

interface PackedEntry {
  key: string | undefined
  number: number
}

function eachOf(
  livestreams: readonly Packable[],
  keyOf: (one: Packable) => string | undefined,
): PackedEntry[] {
  return livestreams.map((livestream, number) => ({ key: keyOf(livestream), number }))
}

/** For each key, the first livestream that has it. */
function eachFirst(livestreams: readonly Packable[], keyOf: (one: Packable) => string): PackedEntry[] {
  const firsts = new Map<string, number>()
  for (const [number, livestream] of livestreams.entries()) {
    const key = keyOf(livestream)
    if (!firsts.has(key)) firsts.set(key, number)
  }
  return [...firsts].map(([key, number]) => ({ key, number }))
}

function packIndex(keyed: readonly PackedEntry[]): PackedIndex {
  const entries = keyed.flatMap(({ key, number }) => {
    return key === undefined ? [] : [{ key: Buffer.from(key), number }]
  })
  entries.sort((a, b) => Buffer.compare(a.key, b.key) || a.number - b.number)
  const numbers = new Uint32Array(new SharedArrayBuffer(entries.length * 4))
  numbers.set(entries.map(({ number }) => number))
  return { keys: packTexts(entries.map(({ key }) => key)), numbers }
}

function packTexts(parts: readonly Buffer[]): Texts {
  const ends = new Uint32Array(new SharedArrayBuffer(parts.length * 4))
  let end = 0
  for (const [index, part] of parts.entries()) {
    end += part.length
    ends[index] = end
  }
  const bytes = new Uint8Array(new SharedArrayBuffer(end))
  for (const [index, part] of parts.entries()) bytes.set(part, startOf(ends, index))
  return { bytes, ends }
}

/** Maximum number of livestreams, and of lists of them, that are kept unpacked. */
const maxUnpacked = 10_000

/** Number of livestreams that are unpacked in one turn of the event loop: some two milliseconds. */
export const perTurn = 500

/** Opens packed livestreams. Each is unpacked when it is first asked for. */
export function openPacked<One extends Livestream>(packed: Packed) {
  const unpack = createUnpack<One>(packed)
  const institution = createSearch(packed.institution)
  const owner = createSearch(packed.owner)
  const unpacked = new Map<number, One>()
  return {
    size: packed.size,
    at,
    /** All livestreams, in several turns of the event loop, so that no event waits for them. */
    async *all(): AsyncGenerator<One> {
      // Without keeping what is unpacked: nobody asks for all livestreams often.
      for (let number = 0; number < packed.size; number++) {
        if (number > 0 && number % perTurn === 0) await nextTurn()
        yield unpack(number)
      }
    },
    byId: createIndex(packed.id),
    byExternalId: createIndex(packed.externalId),
    byFolded: createIndex(packed.folded),
    hasInstitution: institution.has,
    institutions: () => keysOf(packed.institution),
    isPublisherOf: (publisherId: string, institutionId: string) =>
      owner.has(ownerKey(publisherId, institutionId)),
  }

  function at(number: number): One {
    const known = unpacked.get(number)
    if (known) return known
    const livestream = unpack(number)
    if (unpacked.size >= maxUnpacked) unpacked.clear()
    unpacked.set(number, livestream)
    return livestream
  }

  /** Finds all livestreams with a key. Only lists that are not empty are kept: clients choose what is asked. */
  function createIndex(index: PackedIndex): (key: string) => readonly One[] {
    const found = new Map<string, readonly One[]>()
    const { search } = createSearch(index)
    return (key) => {
      const known = found.get(key)
      if (known) return known
      const list = search(key).map(at)
      if (list.length === 0) return list
      if (found.size >= maxUnpacked) found.clear()
      found.set(key, list)
      return list
    }
  }
}

function createUnpack<One extends Livestream>({ texts }: Packed): (number: number) => One {
  const bytes = bufferOf(texts)
  return (number) => JSON.parse(bytes.toString('utf8', startOf(texts.ends, number), texts.ends[number]))
}

function createSearch({ keys, numbers }: PackedIndex) {
  const bytes = bufferOf(keys)
  return {
    has: (key: string) => placesOf(key).next().done === false,
    /** The numbers of the livestreams with this key. */
    search: (key: string) => [...placesOf(key)].map((place) => numbers[place] ?? 0),
  }

  function* placesOf(key: string): Generator<number> {
    // As UTF-8, half a character would be U+FFFD, and could be the key of another livestream.
    if (hasHalfCharacter(key)) return
    const sought = Buffer.from(key)
    let [from, to] = [0, numbers.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (compare(middle, sought) < 0) from = middle + 1
      else to = middle
    }
    for (let place = from; place < numbers.length && compare(place, sought) === 0; place++) yield place
  }

  function compare(place: number, sought: Buffer): number {
    return bytes.compare(sought, 0, sought.length, startOf(keys.ends, place), keys.ends[place])
  }
}

function keysOf({ keys }: PackedIndex): string[] {
  const bytes = bufferOf(keys)
  return Array.from(keys.ends, (end, place) => bytes.toString('utf8', startOf(keys.ends, place), end))
}

/** Whether a text has half of a surrogate pair. */
function hasHalfCharacter(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}

function startOf(ends: Uint32Array, index: number): number {
  return index === 0 ? 0 : (ends[index - 1] ?? 0)
}

function bufferOf({ bytes }: Texts): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
