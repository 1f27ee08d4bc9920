import { digits, digitsOf, isConditional, keyOf, numbersTaken, withNumber } from '../commit.ts'
import type { Change, Condition, StoredRecord, Told } from '../store.ts'
import { timeOf } from '../stored-value.ts'

/*
 * How a group of commits is encoded. The changes are one sequence of bytes. The commit script appends this sequence
 * unchanged to the log. The conditions are a second sequence, which only the script reads. Lengths, counts, indexes and
 * times are big endian. In this list, brackets give the size of a field in bytes:
 *
 * - a change: kind (1) · length of the key (4) · length of the value (4) · horizon (8) · key · event time (8) · value
 * - a commit with conditions: index of the commit's first change, counted from 1 over the group (4) · how many changes
 *   (4) · how many conditions (4) · conditions
 * - a condition: kind (1) · length of the key (4) · length of the value (4) · event time (8) · key · value
 *
 * If a change has no order, its horizon and its event time are NaN. Redis stores event time and value together as one
 * value.
 *
 * The sender does not know numbers (`Numbered`) yet. Instead, the key, the value or both hold an offset of 16 digits.
 * The script and each reader of the log add the group's first number.
 */

/**
 * The kinds of changes. `key`, `value` and `both` are puts with a number. Their names say where the number stands
 * (`Numbered`). `quiet` is added to the kind of a quiet change.
 */
export const kinds = { put: 1, del: 2, tell: 3, key: 4, value: 5, both: 6, quiet: 8 }
export const conditionKinds = { absent: 1, present: 2, value: 3, time: 4, notNewerThan: 5 }

const headBytes = 17
const timeBytes = 8

/** Encodes a group of commits for the script. `taken`: how many numbers the group takes. */
export function encodeGroup(commits: readonly (readonly Change[])[]): {
  changes: Buffer
  conditions: Buffer
  taken: number
} {
  const parts: Buffer[] = []
  let taken = 0
  for (const changes of commits) {
    for (const change of changes) parts.push(...encodeChange(withNumber(change, taken)))
    taken += numbersTaken(changes)
  }
  return { changes: Buffer.concat(parts), conditions: encodeConditions(commits), taken }
}

/** How many changes a commit has. A `check` is none. */
export function countOf(changes: readonly Change[]): number {
  let count = 0
  for (const change of changes) if (!('check' in change)) count++
  return count
}

function encodeConditions(commits: readonly (readonly Change[])[]): Buffer {
  const parts: Buffer[] = []
  let first = 1
  for (const changes of commits) {
    const conditional = changes.filter(isConditional)
    const count = countOf(changes)
    if (conditional.length > 0) {
      const head = Buffer.allocUnsafe(12)
      head.writeUInt32BE(first, 0)
      head.writeUInt32BE(count, 4)
      head.writeUInt32BE(conditional.length, 8)
      parts.push(head, ...conditional.flatMap((change) => encodeCondition(keyOf(change), change.when)))
    }
    first += count
  }
  return Buffer.concat(parts)
}

function encodeCondition(name: string, condition: Condition): Buffer[] {
  const [kind, value, time] = partsOf(condition)
  const key = Buffer.from(name)
  return [headOf(kind, key, value, time), key, value]
}

function partsOf(condition: Condition): [kind: number, value: Buffer, time: number] {
  const none = Buffer.alloc(0)
  if (typeof condition === 'string') return [conditionKinds[condition], none, NaN]
  if ('value' in condition) return [conditionKinds.value, bytesOf(condition.value), NaN]
  if ('time' in condition) return [conditionKinds.time, none, condition.time]
  return [conditionKinds.notNewerThan, none, condition.notNewerThan]
}

function encodeChange(change: Change): Buffer[] {
  if ('check' in change) return []
  const order = 'order' in change ? change.order : undefined
  const key = Buffer.from('tell' in change ? change.tell : keyOf(change))
  const value = 'value' in change ? bytesOf(change.value) : Buffer.alloc(0)
  const time = Buffer.allocUnsafe(timeBytes)
  time.writeDoubleBE(order?.time ?? NaN, 0)
  return [headOf(kindOf(change), key, value, order?.horizon ?? NaN), key, time, value]
}

function headOf(kind: number, key: Buffer, value: Buffer, number: number): Buffer {
  const head = Buffer.allocUnsafe(headBytes)
  head.writeUInt8(kind, 0)
  head.writeUInt32BE(key.length, 1)
  head.writeUInt32BE(value.length, 5)
  head.writeDoubleBE(number, 9)
  return head
}

function kindOf(change: Change): number {
  if ('tell' in change) return kinds.tell
  const kind = 'put' in change ? kinds[change.numbered?.at ?? 'put'] : kinds.del
  return 'isQuiet' in change && change.isQuiet ? kind + kinds.quiet : kind
}

function bytesOf(value: Buffer | string): Buffer {
  return typeof value === 'string' ? Buffer.from(value) : value
}

/**
 * Decodes those changes of a group whose index (from 1) `isWanted` accepts, without quiet ones. `base`: the first number
 * of the group.
 */
export function decodeChanges(bytes: Buffer, base: number, isWanted: (number: number) => boolean): Told[] {
  const told: Told[] = []
  for (const { kind, key, value } of readChanges(bytes, base, (nth, isQuiet) => !isQuiet && isWanted(nth))) {
    if (kind === kinds.del) told.push({ del: key })
    else if (kind === kinds.tell) told.push({ tell: key, value })
    else told.push({ put: key, value })
  }
  return told
}

/** Like `decodeChanges`, but returns the records that all changes leave in the store. */
export function decodeRecords(
  bytes: Buffer,
  base: number,
  isWanted: (number: number) => boolean,
): StoredRecord[] {
  const records: StoredRecord[] = []
  for (const { kind, key, value, timeAt } of readChanges(bytes, base, isWanted)) {
    if (kind === kinds.tell) continue
    const time = timeOf(bytes.subarray(timeAt))
    records.push(kind === kinds.del ? { key, value: undefined } : { key, value, time })
  }
  return records
}

function* readChanges(bytes: Buffer, base: number, isWanted: (number: number, isQuiet: boolean) => boolean) {
  let at = 0
  for (let number = 1; at < bytes.length; number++) {
    const written = bytes.readUInt8(at)
    const isQuiet = written > kinds.quiet
    const kind = isQuiet ? written - kinds.quiet : written
    const keyEnd = at + headBytes + bytes.readUInt32BE(at + 1)
    const valueAt = keyEnd + timeBytes
    const end = valueAt + bytes.readUInt32BE(at + 5)
    const keyAt = at + headBytes
    at = end
    if (!isWanted(number, isQuiet)) continue
    const key = bytes.toString('utf8', keyAt, keyEnd)
    const value = bytes.subarray(valueAt, end)
    yield kind === kinds.put || kind === kinds.del || kind === kinds.tell
      ? { kind, key, value, timeAt: keyEnd }
      : { kind, key: numberedKey(kind, key, base), value: numberedValue(kind, value, base), timeAt: keyEnd }
  }
}

/** The key as Redis stores it: with the number in place of the offset. */
function numberedKey(kind: number, key: string, base: number): string {
  return kind === kinds.value ? key : key.slice(0, -digits) + numberAt(key.slice(-digits), base)
}

/** The value as Redis stores it: with the number in place of the offset. */
function numberedValue(kind: number, value: Buffer, base: number): Buffer {
  if (kind === kinds.key) return value
  const number = numberAt(value.toString('latin1', 0, digits), base)
  return Buffer.concat([Buffer.from(number), value.subarray(digits)])
}

function numberAt(offset: string, base: number): string {
  return digitsOf(base + Number(offset))
}
