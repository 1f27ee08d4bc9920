import { decodeValue, encodeValue } from '../../journal/entry.ts'
import { digits, digitsOf } from '../../store/commit.ts'
import { storeKeys } from '../../store/keys.ts'
import type { Change, Store } from '../../store/store.ts'
import type { DeadLetter, StoredItem, WorkItem } from './work-item.ts'

/* Values: the journal position of the message with the payload, and the item as JSON. Behind position 0, the payload. */

export const workPrefix = storeKeys.work.prefix
export const deadPrefix = storeKeys.workDead.prefix

type Prefix = typeof workPrefix | typeof deadPrefix

/**
 * The change that stores an item for a message of the same commit: message `nth`. The store writes the position of this
 * message in front of the value.
 *
 * The value is a text, because a text is cheaper than a buffer. A commit may store hundreds of items.
 */
export function namingChange(queue: string, item: WorkItem, nth: number): Change {
  return {
    put: keyIn(workPrefix, queue, item),
    value: `${JSON.stringify(storedOf(item))}\n`,
    numbered: { nth, at: 'value' },
  }
}

/** What the record of an item has. */
export function storedOf({ position: _apart, seen: _here, isShared: _no, ...stored }: WorkItem): StoredItem {
  return stored
}

/** Condition of a change: no other node has removed the item or dead letter. */
export const stillThere = { when: 'present', onlyOthers: true } as const
export type StillThere = typeof stillThere

/** The change that stores an item. `payload` is needed if the position of the item is 0. */
export function itemChange(queue: string, item: WorkItem, payload?: Buffer, condition?: StillThere): Change {
  const value = encodeWork(item.position, storedOf(item), payload)
  return { put: keyIn(workPrefix, queue, item), value, ...condition }
}

export function deadLetterChange(queue: string, letter: DeadLetter, payload?: Buffer): Change {
  return { put: keyIn(deadPrefix, queue, letter), value: encodeWork(0, letter, payload) }
}

export function removal(
  prefix: Prefix,
  queue: string,
  of: { sequence: number },
  condition?: StillThere,
): Change {
  return { del: keyIn(prefix, queue, of), ...condition }
}

/** The payload stored with an item or dead letter. Undefined: there is none. */
export async function readPayload(
  store: Store,
  prefix: Prefix,
  queue: string,
  of: { sequence: number },
): Promise<Buffer | undefined> {
  const stored = await store.get(keyIn(prefix, queue, of))
  const payload = stored && decodeValue(stored.subarray(digits)).payload
  return payload && payload.length > 0 ? payload : undefined
}

/** Reads all items and dead letters with a record of their own, each queue in the order of its sequences. */
export async function readWork(store: Store) {
  const items: [queue: string, item: WorkItem][] = []
  const deadLetters: [queue: string, letter: DeadLetter][] = []
  for await (const [key, value] of store.range(workPrefix))
    items.push([parseKey(key).queue, decodeItem(value)])
  for await (const [key, value] of store.range(deadPrefix)) {
    deadLetters.push([parseKey(key).queue, decodeLetter(value)])
  }
  return { items, deadLetters }
}

export function decodeItem(value: Buffer): WorkItem {
  const position = Number(value.toString('latin1', 0, digits))
  return { position, seen: performance.now(), ...decodeLetter<StoredItem>(value) }
}

export function decodeLetter<Letter = DeadLetter>(value: Buffer): Letter {
  return decodeValue<Letter>(value.subarray(digits)).header
}

function encodeWork(position: number, of: object, payload?: Buffer): Buffer {
  return Buffer.concat([Buffer.from(digitsOf(position)), encodeValue(of, payload)])
}

function keyIn(prefix: Prefix, queue: string, { sequence }: { sequence: number }): string {
  return `${prefix}${encodeURIComponent(queue)}/${digitsOf(sequence)}`
}

/** The queue and the sequence in the key of an item or dead letter. */
export function parseKey(key: string): { queue: string; sequence: number } {
  const [, queue = '', sequence] = key.split('/')
  return { queue: decodeURIComponent(queue), sequence: Number(sequence) }
}
