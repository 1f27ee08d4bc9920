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
  publisher: PackedIndex
  institution: PackedIndex
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
export type Packable = Livestream & { isName?: true | undefined }

/** Packs livestreams. Takes a second for 50,000: not for the thread of events. */
export function pack(livestreams: readonly Packable[]): Packed {
  return {
    size: livestreams.length,
    texts: packTexts(livestreams.map((livestream) => Buffer.from(JSON.stringify(livestream)))),
    id: packIndex(livestreams, ({ id, isName }) => (isName ? undefined : id)),
    externalId: packIndex(livestreams, ({ externalId }) => externalId),
    folded: packIndex(livestreams, ({ externalId }) => foldExternalId(externalId)),
    publisher: packIndex(livestreams, ({ publisher }) => publisher.id),
    institution: packIndex(livestreams, ({ institution }) => institution.id),
  }
}

function packIndex(
  livestreams: readonly Packable[],
  keyOf: (livestream: Packable) => string | undefined,
): PackedIndex {
  const entries = livestreams.flatMap((livestream, number) => {
    const key = keyOf(livestream)
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

/** Opens packed livestreams. Each is unpacked when it is first asked for. */
export function openPacked<One extends Livestream>(packed: Packed) {
  const texts = bufferOf(packed.texts)
  const unpacked = new Map<number, One>()
  return {
    size: packed.size,
    at,
    *all(): Generator<One> {
      // Without keeping what is unpacked: nobody asks for all livestreams often.
      for (let number = 0; number < packed.size; number++) yield unpack(number)
    },
    byId: createIndex(packed.id),
    byExternalId: createIndex(packed.externalId),
    byFolded: createIndex(packed.folded),
    byPublisher: createIndex(packed.publisher),
    hasInstitution: (institutionId: string) => has(packed.institution, institutionId),
  }

  function at(number: number): One {
    const known = unpacked.get(number)
    if (known) return known
    const livestream = unpack(number)
    if (unpacked.size >= maxUnpacked) unpacked.clear()
    unpacked.set(number, livestream)
    return livestream
  }

  function unpack(number: number): One {
    const { ends } = packed.texts
    return JSON.parse(texts.toString('utf8', startOf(ends, number), ends[number]))
  }

  /** Finds all livestreams with a key. Only lists that are not empty are kept: clients choose what is asked. */
  function createIndex(index: PackedIndex): (key: string) => readonly One[] {
    const found = new Map<string, readonly One[]>()
    const search = createSearch(index)
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

function has(index: PackedIndex, key: string): boolean {
  return createSearch(index)(key).length > 0
}

/** Makes the search of an index: returns the numbers of the livestreams with this key. */
function createSearch({ keys, numbers }: PackedIndex): (key: string) => number[] {
  const bytes = bufferOf(keys)
  return (key) => {
    // As UTF-8, half a character would be U+FFFD, and could be the key of another livestream.
    if (hasHalfCharacter(key)) return []
    const sought = Buffer.from(key)
    let [from, to] = [0, numbers.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (compare(middle, sought) < 0) from = middle + 1
      else to = middle
    }
    const found: number[] = []
    for (let place = from; place < numbers.length && compare(place, sought) === 0; place++) {
      found.push(numbers[place] ?? 0)
    }
    return found
  }

  function compare(place: number, sought: Buffer): number {
    return bytes.compare(sought, 0, sought.length, startOf(keys.ends, place), keys.ends[place])
  }
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
