import type { Change, Told } from '../store.ts'

/*
 * The changes of a group of commits as one run of bytes: sent once, read by the script, kept in the log as it
 * is and read from there by the other nodes. Each change is
 *
 *     kind 1 · bytes of the key 4 · bytes of the value 4 · horizon 8 · key · event time 8 · value
 *
 * with numbers in big endian and NaN where there is no order. Event time and value together are the value
 * that is stored.
 */

export const kinds = { put: 1, del: 2, tell: 3 }

const headBytes = 17
const timeBytes = 8

export function encodeChanges(changes: readonly Change[]): Buffer {
  return Buffer.concat(changes.flatMap(encodeChange))
}

function encodeChange(change: Change): Buffer[] {
  const [kind, name] = 'put' in change ? [kinds.put, change.put] : wordOrDeletion(change)
  const order = 'order' in change ? change.order : undefined
  const key = Buffer.from(name)
  const value = 'value' in change ? bytesOf(change.value) : Buffer.alloc(0)
  const head = Buffer.allocUnsafe(headBytes)
  head.writeUInt8(kind, 0)
  head.writeUInt32BE(key.length, 1)
  head.writeUInt32BE(value.length, 5)
  head.writeDoubleBE(order?.horizon ?? NaN, 9)
  const time = Buffer.allocUnsafe(timeBytes)
  time.writeDoubleBE(order?.time ?? NaN, 0)
  return [head, key, time, value]
}

function wordOrDeletion(change: Exclude<Change, { put: string }>): [kind: number, name: string] {
  return 'tell' in change ? [kinds.tell, change.tell] : [kinds.del, change.del]
}

function bytesOf(value: Buffer | string): Buffer {
  return typeof value === 'string' ? Buffer.from(value) : value
}

/** The changes whose number, counted from 1, is wanted. */
export function decodeChanges(bytes: Buffer, isWanted: (number: number) => boolean): Told[] {
  const told: Told[] = []
  let at = 0
  for (let number = 1; at < bytes.length; number++) {
    const kind = bytes.readUInt8(at)
    const keyEnd = at + headBytes + bytes.readUInt32BE(at + 1)
    const end = keyEnd + timeBytes + bytes.readUInt32BE(at + 5)
    const key = bytes.toString('utf8', at + headBytes, keyEnd)
    const value = bytes.subarray(keyEnd + timeBytes, end)
    at = end
    if (!isWanted(number)) continue
    if (kind === kinds.put) told.push({ put: key, value })
    else if (kind === kinds.del) told.push({ del: key })
    else told.push({ tell: key, value })
  }
  return told
}
