import { isUtf8 } from 'node:buffer'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { isRecord } from '../../event/json.ts'
import { type Form, instant, object, orNull, text } from '../../store/record-form.ts'
import { differences, type FeedDifferences } from './differences.ts'
import { type Feed, type Livestream, openFeed, readLivestreams } from './feed.ts'
import { type Former, nextFormer } from './former.ts'
import { type GuardedBy, whyGuarded } from './guards.ts'
import { type Packed, pack, unpackAll } from './packed.ts'
import { type FeedProblem, type FeedReason, refuse } from './refusals.ts'

/*
 * The work on a feed that takes long: it runs in a thread of its own (`thread.ts`). The functions take and return plain
 * data and shared memory, and keep nothing.
 */

/** A feed as it came in. */
export interface ReadFeed {
  /** The document, in shared memory. */
  blocks: readonly Uint8Array[]
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
  const read = readDocument(of.read)
  if ('reason' in read) return read
  const { livestreams } = read
  const packed = pack(livestreams)
  const next = openFeed(packed)
  const guarded = of.force ? undefined : whyGuarded(next, opened(of), of.guards)
  if (guarded) return guarded
  const { digest, etag } = of.read
  const about = { source: of.source, etag, digest, loadedAt: new Date(of.now).toISOString() }
  const before = of.inUse ? unpackAll<Livestream>(of.inUse) : []
  const former = nextFormer(unpackAll(of.former), before, next, of.now)
  return {
    good: {
      about,
      packed,
      former: pack(former),
      stored: { feed: stored(livestreams, about), former: stored(former) },
    },
  }
}

/** What `hubctl feed diff` shows: what would change, and why it would be refused. */
export interface FeedComparison {
  items: number | null
  reason: FeedReason | null
  problem: string | null
  differences: FeedDifferences | null
}

/** Compares a document with the feed in use. Guards count as in a refresh without `--force`. */
export function compare(of: Omit<Examination, 'former' | 'force' | 'now'>): FeedComparison {
  const read = readDocument(of.read)
  if ('reason' in read) return { items: null, ...read, differences: null }
  const packed = pack(read.livestreams)
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
export function restoreFeed(value: Uint8Array): { about: AboutFeed; packed: Packed } | Damaged {
  return unlessDamaged(() => {
    const { items, ...about } = JSON.parse(Buffer.from(value).toString())
    const expected = aboutForm(about)
    if (expected !== undefined) throw new Error(`expected ${expected}`)
    return { about, packed: pack(unstored(items)) }
  })
}

/** Reads what `examine` gave to the store. */
export function restoreFormer(value: Uint8Array): { packed: Packed } | Damaged {
  return unlessDamaged(() => ({ packed: pack(unstored(JSON.parse(Buffer.from(value).toString()).items)) }))
}

function unlessDamaged<Result>(read: () => Result): Result | Damaged {
  try {
    return read()
  } catch (error) {
    return { damaged: error instanceof Error ? error.message : String(error) }
  }
}

function readDocument({ blocks }: ReadFeed): { livestreams: Livestream[] } | FeedProblem {
  const bytes = Buffer.concat(blocks)
  if (!isUtf8(bytes)) return refuse('encoding', 'not UTF-8')
  if (!isParsable(bytes)) return refuse('unfinished', `it has more than ${maxNodes} objects and lists`)
  const text = bytes.toString()
  return readLivestreams(text.startsWith('\uFEFF') ? text.slice(1) : text)
}

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
function stored(livestreams: readonly Livestream[], about?: AboutFeed): Uint8Array {
  const items = deflateRawSync(JSON.stringify(livestreams), { level: 1 }).toString('base64')
  // Not `Buffer.from`: the bytes are handed over to the thread of events, and must share no memory with others.
  return new TextEncoder().encode(JSON.stringify({ ...about, items }))
}

function unstored(items: unknown): Former[] {
  const list: unknown = JSON.parse(inflateRawSync(Buffer.from(String(items), 'base64')).toString())
  if (!Array.isArray(list) || !list.every(isRecord)) throw new Error('expected livestreams')
  return list as unknown as Former[]
}
