import { padded } from '../../store/nodes/sequences.ts'
import type { Change, Condition, Store } from '../../store/store.ts'
import type { DeadLetter, WorkItem } from './work-item.ts'

/*
 * How work lies in the store: `work/{queue}/{sequence}` holds an item, `work-dead/{queue}/{sequence}` one that
 * was given up, `work-body/{sequence}` what the items of one event share.
 */

/** `when`: of an item that is stored already, that it still is. */
export function itemChange(queue: string, item: WorkItem, when?: Condition): Change {
  return { put: itemKey(queue, item.sequence), value: JSON.stringify(item), ...(when && { when }) }
}

export function itemRemoval(queue: string, item: WorkItem): Change {
  return { del: itemKey(queue, item.sequence) }
}

export function deadLetterChange(queue: string, letter: DeadLetter): Change {
  return { put: deadLetterKey(queue, letter.sequence), value: JSON.stringify(letter) }
}

/** `when`: that it is still stored. */
export function deadLetterRemoval(queue: string, letter: WorkItem, when?: Condition): Change {
  return { del: deadLetterKey(queue, letter.sequence), ...(when && { when }) }
}

export function bodyChange(sequence: number, body: Buffer): Change {
  return { put: bodyKey(sequence), value: body }
}

export function bodyRemoval(sequence: number): Change {
  return { del: bodyKey(sequence) }
}

/** Without those that store the same under the same key again, as the groups of one event do with its body. */
export function eachOnce(changes: readonly Change[]): Change[] {
  const keys = new Set<string>()
  return changes.filter((change) => !('put' in change) || (!keys.has(change.put) && keys.add(change.put)))
}

export function readBody(store: Store, sequence: number): Promise<Buffer | undefined> {
  return store.get(bodyKey(sequence))
}

/** Everything stored, each queue in its order. */
export async function readWork(store: Store) {
  const items: [queue: string, item: WorkItem][] = []
  const deadLetters: [queue: string, letter: DeadLetter][] = []
  const bodies: number[] = []
  for await (const [key, value] of store.range('work/')) {
    items.push([placeOf(key).queue, JSON.parse(value.toString())])
  }
  for await (const [key, value] of store.range('work-dead/')) {
    deadLetters.push([placeOf(key).queue, JSON.parse(value.toString())])
  }
  for await (const [key] of store.range('work-body/')) bodies.push(numberOf(key))
  return { items, deadLetters, bodies }
}

function itemKey(queue: string, sequence: number): string {
  return `work/${encodeURIComponent(queue)}/${padded(sequence)}`
}

function deadLetterKey(queue: string, sequence: number): string {
  return `work-dead/${encodeURIComponent(queue)}/${padded(sequence)}`
}

function bodyKey(sequence: number): string {
  return `work-body/${padded(sequence)}`
}

/** What the key of an item or dead letter says. */
export function placeOf(key: string): { queue: string; sequence: number } {
  const [, queue = '', sequence] = key.split('/')
  return { queue: decodeURIComponent(queue), sequence: Number(sequence) }
}

/** The sequence in the key of a body. */
export function numberOf(key: string): number {
  return Number(key.split('/')[1])
}
