import { isUtf8 } from 'node:buffer'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { isRecord } from '../../event/json.ts'
import { type Form, instant, object, orNull, text } from '../../store/record-form.ts'
import { differences, type FeedDifferences } from './differences.ts'
import { type Feed, type Livestream, openFeed, readLivestreams } from './feed.ts'
import { type Former, nextFormer } from './former.ts'
import { type GuardedBy, whyGuarded } from './guards.ts'
import { jsonOf, type Packed, pack, startPacking, unpackAll } from './packed.ts'
import { readInParts } from './parts.ts'
import { type FeedProblem, type FeedReason, refuse } from './refusals.ts'

/*
 * The work on a feed that takes long: it runs in a thread of its own (`thread.ts`). The functions take and return plain
 * data and shared memory, and keep nothing.
 */

/** A feed as it came in. */
export interface ReadFeed {
  /** The document, in shared memory. */
  bytes: Uint8Array
  /** SHA-256 of the document, hex. */
  digest: string
  /** The ETag of the response; null for a file. */
  etag: string | null
}

/** What the store keeps of a good feed, besides the livestreams. */
export interface AboutFeed {
  source: string
  etag: string | null
  digest: string
  /** ISO 8601 */
  loadedAt: string
}

interface Examination {
  read: ReadFeed
  source: string
  /** The feed in use, whatever its source. */
  inUse: Packed | undefined
  /** The last good feed of the same source. */
  lastGood: Packed | undefined
  former: Packed
  guards: GuardedBy
  /** `--force`: guards that a person can override do not count. */
  force: boolean
  /** Milliseconds since the epoch. */
  now: number
  spare?: SpareMemory
}

/** Memory of feeds that are in use no more, where the next one is packed (`startPacking`). */
export interface SpareMemory {
  feed?: SharedArrayBuffer | undefined
  former?: SharedArrayBuffer | undefined
}

/** A good feed, ready to be stored and used. */
export interface GoodFeed {
  about: AboutFeed
  packed: Packed
  former: Packed
  /** What the store keeps (`restoreFeed`, `restoreFormer`). */
  stored: { feed: Uint8Array; former: Uint8Array }
}

/** Reads a document, checks it, compares it, and makes everything that is needed to use it. */
export function examine(of: Examination): { good: GoodFeed } | FeedProblem {
  const packed = packDocument(of.read, of.spare?.feed)
  if ('reason' in packed) return packed
  const next = openFeed(packed, unkept)
  const guarded = of.force ? undefined : whyGuarded(next, opened(of), of.guards)
  if (guarded) return guarded
  const { digest, etag } = of.read
  const about = { source: of.source, etag, digest, loadedAt: new Date(of.now).toISOString() }
  const before = of.inUse ? unpackAll<Livestream>(of.inUse) : []
  const former = pack(nextFormer(unpackAll<Former>(of.former), before, next, of.now), of.spare?.former)
  return { good: { about, packed, former, stored: { feed: stored(packed, about), former: stored(former) } } }
}

/** Each livestream is looked up once. */
const unkept = 1

/** What `hubctl feed diff` shows: what would change, and why it would be refused. */
export interface FeedComparison {
  items: number | null
  reason: FeedReason | null
  problem: string | null
  differences: FeedDifferences | null
}

/** Compares a document with the feed in use. Guards count as in a refresh without `--force`. */
export function compare(of: Omit<Examination, 'former' | 'force' | 'now'>): FeedComparison {
  const packed = packDocument(of.read)
  if ('reason' in packed) return { items: null, ...packed, differences: null }
  const guarded = whyGuarded(openFeed(packed), opened(of), of.guards)
  return {
    items: packed.size,
    reason: guarded?.reason ?? null,
    problem: guarded?.problem ?? null,
    differences: differences(of.inUse, packed),
  }
}

/**
 * What is stored cannot be read, now or ever. This is a result and no error of the thread: a fault that passes must not
 * count as damage, because what is damaged is forgotten.
 */
export interface Damaged {
  damaged: string
}

/** A field value of HTTP (RFC 9110 §5.5): the ETag is sent back. */
const fieldValue: Form = (value) =>
  typeof value === 'string' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value) ? undefined : 'the value of a header'

const aboutForm = object({ source: text, etag: orNull(fieldValue), digest: text, loadedAt: instant })

/** Reads what `examine` gave to the store. */
export function restoreFeed(of: Stored): { about: AboutFeed; packed: Packed } | Damaged {
  return unlessDamaged(() => {
    const { items, ...about } = JSON.parse(Buffer.from(of.value).toString())
    const expected = aboutForm(about)
    if (expected !== undefined) throw new Error(`expected ${expected}`)
    return { about, packed: unstored(items, of.spare) }
  })
}

/** Reads what `examine` gave to the store. */
export function restoreFormer({ value, spare }: Stored): { packed: Packed } | Damaged {
  return unlessDamaged(() => ({ packed: unstored(JSON.parse(Buffer.from(value).toString()).items, spare) }))
}

interface Stored {
  value: Uint8Array
  spare?: SharedArrayBuffer | undefined
}

function unlessDamaged<Result>(read: () => Result): Result | Damaged {
  try {
    return read()
  } catch (error) {
    return { damaged: error instanceof Error ? error.message : String(error) }
  }
}

function packDocument({ bytes: shared }: ReadFeed, spare?: SharedArrayBuffer): Packed | FeedProblem {
  const bytes = Buffer.from(shared.buffer, shared.byteOffset, shared.length)
  if (!isUtf8(bytes)) return refuse('encoding', 'not UTF-8')
  if (!isParsable(bytes)) return refuse('unfinished', `it has more than ${maxNodes} objects and lists`)
  const hasMark = bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark)
  let packing = startPacking(spare)
  const problem = readLivestreams(hasMark ? bytes.subarray(3) : bytes, () => {
    packing = startPacking(spare)
    return packing.add
  })
  return problem ?? packing.end()
}

const byteOrderMark = Buffer.from('\uFEFF')

/**
 * Maximum number of objects and lists: forty for each livestream. Twenty million of them fit into a feed, and would take
 * JSON.parse gigabytes and minutes.
 */
const maxNodes = 2_000_000

function isParsable(bytes: Buffer): boolean {
  let nodes = 0
  // Without an iterator: it would make an object for each byte, hundreds of megabytes of garbage.
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === braceCode || bytes[at] === bracketCode) nodes++
  }
  return nodes <= maxNodes
}

const [braceCode, bracketCode] = ['{'.charCodeAt(0), '['.charCodeAt(0)]

function opened({ inUse, lastGood }: Pick<Examination, 'inUse' | 'lastGood'>): {
  inUse: Feed | undefined
  lastGood: Feed | undefined
} {
  return { inUse: inUse && openFeed(inUse), lastGood: lastGood && openFeed(lastGood) }
}

/** JSON as all values of the store; the livestreams compressed, because each change of a feed stores all of them. */
function stored(packed: Packed, about?: AboutFeed): Uint8Array {
  const items = deflateRawSync(jsonOf(packed), { level: 1 }).toString('base64')
  // Not `Buffer.from`: the bytes are handed over to the thread of events, and must share no memory with others.
  return new TextEncoder().encode(JSON.stringify({ ...about, items }))
}

function unstored(items: unknown, spare?: SharedArrayBuffer): Packed {
  const list = inflateRawSync(Buffer.from(String(items), 'base64'))
  const document = Buffer.concat([Buffer.from('{"items":'), list, Buffer.from('}')])
  let packing = startPacking(spare)
  const { rest } = readInParts(document, 'items', () => {
    packing = startPacking(spare)
    return (item) => {
      if (!isRecord(item)) throw new Error('expected livestreams')
      packing.add(item as unknown as Former)
    }
  })
  if (!isRecord(rest) || !Array.isArray(rest.items)) throw new Error('expected livestreams')
  return packing.end()
}
