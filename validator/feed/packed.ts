import { setImmediate as nextTurn } from 'node:timers/promises'
import { foldExternalId } from './external-id.ts'
import type { Livestream } from './livestream.ts'

/**
 * Livestreams in shared memory, with the indexes of `Livestreams`. Another thread makes them and hands them over without
 * copying. Neither taking them nor the garbage collector takes the event loop any time, however many they are.
 */
export interface Packed {
  /** All of it: first the livestreams as a list in JSON, then the keys of the indexes, then numbers. */
  memory: SharedArrayBuffer
  size: number
  /** Where in the memory the JSON of each livestream ends. Between two of them is a comma. */
  ends: Numbers
  id: PackedIndex
  externalId: PackedIndex
  folded: PackedIndex
  /** Which institutions have livestreams, and which publishers of theirs (`ownerKey`). Each key stands there once. */
  institution: PackedIndex
  owner: PackedIndex
}

/** Keys in the order of the livestreams. Key `n` begins at `starts[n]`, and the next one where it ends. */
interface PackedIndex {
  starts: Numbers
  /** The numbers of the livestreams that the keys lead to. */
  numbers: Numbers
  /** The keys in the order of their bytes. Equal keys: in the order of the feed. */
  sorted: Numbers
}

/** Where numbers of 32 bits are in the memory. */
interface Numbers {
  at: number
  length: number
}

/** A livestream to pack. `isName`: it is found by its external id only. */
type Packable = Livestream & { isName?: true | undefined }

/** Packs livestreams. Takes a second for 50,000: not for the thread of events. */
export function pack(livestreams: Iterable<Packable>, spare?: SharedArrayBuffer): Packed {
  const packing = startPacking(spare)
  for (const livestream of livestreams) packing.add(livestream)
  return packing.end()
}

/**
 * Packs livestreams one by one, so that no more than one of them must be in memory. `spare`: memory that is used for them
 * if it is large enough. The garbage collector does not know how large shared memory is, and would free that of former
 * feeds late.
 */
export function startPacking(spare = new SharedArrayBuffer(leastBytes)) {
  let bytes = Buffer.from(spare)
  let memory = spare
  let filled = 0
  const ends: number[] = []
  const id = startKeys()
  const externalId = startKeys()
  const folded = startKeys()
  const institutions = startKeys()
  const owners = startKeys()
  write('[')
  return {
    add(livestream: Packable): void {
      const number = ends.length
      write(`${number === 0 ? '' : ','}${JSON.stringify(livestream)}`)
      ends.push(filled)
      const { publisher, institution } = livestream
      if (!livestream.isName) id.add(livestream.id, number)
      externalId.add(livestream.externalId, number)
      folded.add(foldExternalId(livestream.externalId), number)
      institutions.addOnce(institution.id, number)
      owners.addOnce(ownerKey(publisher.id, institution.id), number)
    },

    end(): Packed {
      write(']')
      const packed = {
        size: ends.length,
        id: writeIndex(id.all),
        externalId: writeIndex(externalId.all),
        folded: writeIndex(folded.all),
        institution: writeIndex(institutions.all),
        owner: writeIndex(owners.all),
        ends: writeNumbers(ends),
      }
      return { ...packed, memory }
    },
  }

  function writeIndex(keys: readonly Key[]): PackedIndex {
    const starts = keys.map(({ text }) => {
      const start = filled
      write(text)
      return start
    })
    starts.push(filled)
    const compare = (a: number, b: number) =>
      bytes.compare(bytes, starts[b], starts[b + 1], starts[a], starts[a + 1]) || a - b
    const sorted = Uint32Array.from(keys.keys()).sort(compare)
    return {
      starts: writeNumbers(starts),
      numbers: writeNumbers(keys.map(({ number }) => number)),
      sorted: writeNumbers(sorted),
    }
  }

  function writeNumbers(numbers: ArrayLike<number>): Numbers {
    // A Uint32Array begins at a multiple of four.
    const at = Math.ceil(filled / 4) * 4
    reserve(at + numbers.length * 4)
    new Uint32Array(memory, at, numbers.length).set(numbers)
    filled = at + numbers.length * 4
    return { at, length: numbers.length }
  }

  function write(text: string): void {
    reserve(filled + text.length * mostBytesOfUnit)
    filled += bytes.write(text, filled)
  }

  function reserve(length: number): void {
    if (length <= memory.byteLength) return
    memory = new SharedArrayBuffer(Math.max(length, memory.byteLength * 2))
    const larger = Buffer.from(memory)
    bytes.copy(larger, 0, 0, filled)
    bytes = larger
  }
}

const leastBytes = 64 * 1024
/** A UTF-16 unit takes at most so many bytes in UTF-8. */
const mostBytesOfUnit = 3

/** A key, and the number of the livestream that it leads to. */
interface Key {
  text: string
  number: number
}

function startKeys() {
  const all: Key[] = []
  const known = new Set<string>()
  return {
    all,
    add(text: string, number: number): void {
      all.push({ text, number })
    },
    /** Adds a key for the first livestream that has it. */
    addOnce(text: string, number: number): void {
      if (known.has(text)) return
      known.add(text)
      all.push({ text, number })
    },
  }
}

/** The livestreams as a list in JSON. */
export function jsonOf(packed: Packed): Buffer {
  const ends = numbersOf(packed, packed.ends)
  return Buffer.from(packed.memory, 0, (ends.at(-1) ?? 1) + 1)
}

/** Unpacks all livestreams at once: not for the thread of events. */
export function* unpackAll<One extends Livestream>(packed: Packed): Generator<One> {
  const unpack = createUnpack<One>(packed)
  for (let number = 0; number < packed.size; number++) yield unpack(number)
}

function ownerKey(publisherId: string, institutionId: string): string {
  return `${publisherId} ${institutionId}`
}

/** Maximum number of livestreams, and of lists of them, that are kept unpacked. */
const maxUnpacked = 10_000

/** Number of livestreams that are unpacked in one turn of the event loop: some two milliseconds. */
export const perTurn = 500

/** Opens packed livestreams. Each is unpacked when it is first asked for. */
export function openPacked<One extends Livestream>(packed: Packed, most = maxUnpacked) {
  const unpack = createUnpack<One>(packed)
  const institution = createSearch(packed, packed.institution)
  const owner = createSearch(packed, packed.owner)
  const unpacked = new Map<number, One>()
  let readers = 0
  return {
    size: packed.size,
    at,
    /** All livestreams, in several turns of the event loop, so that no event waits for them. */
    all(): AsyncGenerator<One> {
      readers++
      return readAll()
    },
    /** Whether somebody reads all livestreams: the memory must stay as it is. */
    isBeingRead: () => readers > 0,
    byId: createIndex(packed.id),
    byExternalId: createIndex(packed.externalId),
    byFolded: createIndex(packed.folded),
    hasInstitution: institution.has,
    institutions: () => institution.keys(),
    isPublisherOf: (publisherId: string, institutionId: string) =>
      owner.has(ownerKey(publisherId, institutionId)),
  }

  async function* readAll(): AsyncGenerator<One> {
    try {
      // Nothing stays unpacked, because nobody asks for all livestreams often.
      for (let number = 0; number < packed.size; number++) {
        if (number > 0 && number % perTurn === 0) await nextTurn()
        yield unpack(number)
      }
    } finally {
      readers--
    }
  }

  function at(number: number): One {
    const known = unpacked.get(number)
    if (known) return known
    const livestream = unpack(number)
    if (unpacked.size >= most) unpacked.clear()
    unpacked.set(number, livestream)
    return livestream
  }

  /** Finds all livestreams with a key. Only lists that are not empty are kept: clients choose what is asked. */
  function createIndex(index: PackedIndex): (key: string) => readonly One[] {
    const found = new Map<string, readonly One[]>()
    const { search } = createSearch(packed, index)
    return (key) => {
      const known = found.get(key)
      if (known) return known
      const list = search(key).map(at)
      if (list.length === 0) return list
      if (found.size >= most) found.clear()
      found.set(key, list)
      return list
    }
  }
}

function createUnpack<One extends Livestream>(packed: Packed): (number: number) => One {
  const bytes = Buffer.from(packed.memory)
  const ends = numbersOf(packed, packed.ends)
  // Before the first one is a bracket, before the others a comma.
  return (number) => JSON.parse(bytes.toString('utf8', (ends[number - 1] ?? 0) + 1, ends[number]))
}

function createSearch(packed: Packed, index: PackedIndex) {
  const bytes = Buffer.from(packed.memory)
  const starts = numbersOf(packed, index.starts)
  const numbers = numbersOf(packed, index.numbers)
  const sorted = numbersOf(packed, index.sorted)
  return {
    has: (key: string) => placesOf(key).next().done === false,
    /** The numbers of the livestreams with this key. */
    search: (key: string) => [...placesOf(key)].map((place) => numbers[sorted[place] ?? 0] ?? 0),
    keys: () => Array.from(sorted, (key) => bytes.toString('utf8', starts[key], starts[key + 1])),
  }

  function* placesOf(key: string): Generator<number> {
    // As UTF-8, half a character would be U+FFFD, and could be the key of another livestream.
    if (hasHalfCharacter(key)) return
    const sought = Buffer.from(key)
    let [from, to] = [0, sorted.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (compare(middle, sought) < 0) from = middle + 1
      else to = middle
    }
    for (let place = from; place < sorted.length && compare(place, sought) === 0; place++) yield place
  }

  function compare(place: number, sought: Buffer): number {
    const key = sorted[place] ?? 0
    return bytes.compare(sought, 0, sought.length, starts[key], starts[key + 1])
  }
}

/** Whether a text has half of a surrogate pair. */
function hasHalfCharacter(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}

function numbersOf({ memory }: Packed, { at, length }: Numbers): Uint32Array {
  return new Uint32Array(memory, at, length)
}
