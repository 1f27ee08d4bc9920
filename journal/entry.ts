import type { Excerpt, Message } from '../event/message.ts'
import { digitsOf } from '../store/commit.ts'
import { storeKeys } from '../store/keys.ts'
import type { Change, Store } from '../store/store.ts'

/* A message has an entry in one of the two indexes of its stream: all messages of one livestream, or of one topic. */

export const journalPrefix = storeKeys.journal.prefix
export const latestPrefix = storeKeys.latest.prefix
export const everyPrefix = storeKeys.every.prefix

/** An accepted message at its place in the journal. */
export interface Entry extends Message {
  /** Number of the message in the order of acceptance, over all streams. */
  position: number
  /** When the hub accepted the message, milliseconds since the epoch. */
  at: number
}

/** The clocks of nodes, which give entries their `at`, differ by at most this, milliseconds. */
export const clockToleranceMs = 30_000

/** A message in the index of a stream. */
export interface IndexEntry {
  stream: string
  position: number
  topic: string
  keep: Entry['queue']['keep']
  qos: Entry['qos']
  /** Bytes of the stored message, without a payload that another message holds. */
  bytes: number
  at: number
  expires?: number
  isReport?: true
  hasErrors?: true
  /** This message also holds the payload of later messages, up to this many positions later. */
  sharedUpTo?: number
}

type IndexFields = Omit<IndexEntry, 'keep' | 'stream' | 'position'>

type Head = Omit<Entry, 'payload' | 'position' | 'refused'>

/** The header of a stored message, before its payload. */
type Header = Head & {
  /** The first `kept` bytes of the refused event are stored after the payload. */
  refused?: Omit<Excerpt, 'head'> & { kept: number }
  /** Set if another message holds the payload. That message is this many positions earlier. */
  sharedWith?: number
}

/** Makes every field mandatory, so the compiler reports a forgotten field. JSON leaves out undefined fields. */
type Written<Fields> = { [Name in keyof Required<Fields>]: Fields[Name] | undefined }

/** Returns the changes that append the messages in this order. The commit gives each message a number: its position. */
export function appendChanges(messages: readonly Message[], at: number): Change[] {
  const changes: Change[] = []
  let first = 0
  for (const [nth, message] of messages.entries()) {
    const { payload, refused } = message
    // Messages that share a payload are neighbours in `messages`.
    if (payload !== messages[first]?.payload) first = nth
    const isFirst = first === nth
    const header = headerOf(message, at, isFirst ? undefined : nth - first)
    const value = isFirst ? encodeValue(header, payload, refused?.head) : encodeValue(header)
    const sharedUpTo = isFirst ? lastWith(payload, messages, nth) - nth : 0
    const index = indexOf(message, at, value.length, sharedUpTo)
    const numbered = { nth, at: 'key' as const }
    changes.push(
      { put: journalPrefix, value, numbered },
      { put: indexPrefix(message), value: JSON.stringify(index), numbered, isQuiet: true },
    )
  }
  return changes
}

/** Bytes of the `nth` message in the changes of `appendChanges`. */
export function storedBytes(changes: readonly Change[], nth: number): number {
  const change = changes[2 * nth]
  return change && 'value' in change ? change.value.length : 0
}

function lastWith(payload: Buffer, messages: readonly Message[], nth: number): number {
  let last = nth
  while (messages[last + 1]?.payload === payload) last++
  return last
}

/** Reads a stored message. `sharedWith`: the payload is in the message this many positions earlier. */
export function readEntry(position: number, value: Buffer): { entry: Entry; sharedWith?: number } {
  const { header, payload } = decodeValue<Header>(value)
  // No copy of the parsed object: every node reads every message.
  if (header.sharedWith === undefined && !header.refused) {
    return { entry: Object.assign<Head, Pick<Entry, 'payload' | 'position'>>(header, { payload, position }) }
  }
  const { sharedWith, refused, ...rest } = header
  const end = payload.length - (refused?.kept ?? 0)
  const entry: Entry = {
    ...rest,
    payload: payload.subarray(0, end),
    position,
    ...(refused && { refused: withHead(refused, payload.subarray(end)) }),
  }
  return { entry, ...(sharedWith !== undefined && { sharedWith }) }
}

/**
 * Yields messages as they are stored (`readEntry`), from position `from` to just before `before`, at most `most`.
 * `bytes`: those of the stored message.
 */
export async function* storedEntries(
  store: Store,
  { from, before, most }: { from: number; before?: number; most?: number },
): AsyncGenerator<{ entry: Entry; sharedWith?: number; bytes: number }, undefined> {
  const bounds = { from: digitsOf(from), before: before === undefined ? undefined : digitsOf(before), most }
  for await (const [key, value] of store.range(journalPrefix, bounds)) {
    yield { ...readEntry(positionIn(key), value), bytes: value.length }
  }
}

function withoutHead({ head, ...about }: Excerpt): NonNullable<Header['refused']> {
  return { ...about, kept: head.length }
}

function withHead({ kept: _, ...about }: NonNullable<Header['refused']>, head: Buffer): Excerpt {
  return { ...about, head }
}

export function readIndexEntry(key: string, value: Buffer): IndexEntry {
  const [keep, stream = '', position] = key.split('/')
  const entry = JSON.parse(value.toString())
  // No copy of the parsed object: a start reads tens of thousands of entries.
  entry.keep = keep === 'latest' ? 'latest' : 'every'
  entry.stream = decodeURIComponent(stream)
  entry.topic ??= entry.stream
  entry.position = Number(position)
  return entry
}

export function journalKey(position: number): string {
  return journalPrefix + digitsOf(position)
}

/** The prefix of the keys in the index of a stream. */
export function indexPrefix({ queue, stream, topic }: Pick<Message, 'queue' | 'stream' | 'topic'>): string {
  return `${queue.keep}/${encodeURIComponent(stream ?? topic)}/`
}

export function indexKey({
  keep,
  stream,
  position,
}: Pick<IndexEntry, 'keep' | 'stream' | 'position'>): string {
  return `${keep}/${encodeURIComponent(stream)}/${digitsOf(position)}`
}

/** The position at the end of a key. */
export function positionIn(key: string): number {
  return Number(key.slice(key.lastIndexOf('/') + 1))
}

/** Names each field, as `indexOf` does: copies of whole objects took most of the time. */
function headerOf(message: Message, at: number, sharedWith: number | undefined): Written<Header> {
  const { topic, stream, institutionId, qos, retained, queue, isReport, isRepetition, hasErrors, creator } =
    message
  const refused = sharedWith === undefined && message.refused ? withoutHead(message.refused) : undefined
  return {
    topic,
    stream,
    institutionId,
    qos,
    retained,
    queue,
    isReport,
    isRepetition,
    hasErrors,
    at,
    sharedWith,
    refused,
    creator,
  }
}

function indexOf(message: Message, at: number, bytes: number, sharedUpTo: number): Written<IndexFields> {
  const { topic, stream, qos, queue, isReport, hasErrors } = message
  return {
    // `readIndexEntry` replaces an undefined topic by the stream in the key.
    topic: stream === undefined || stream === topic ? undefined : topic,
    qos,
    at,
    expires: queue.expires,
    isReport,
    hasErrors,
    bytes,
    sharedUpTo: sharedUpTo > 0 ? sharedUpTo : undefined,
  }
}

/** Puts a small JSON header and the bytes that it describes into one stored value. */
export function encodeValue(header: object, ...bytes: readonly (Buffer | undefined)[]): Buffer {
  const json = JSON.stringify(header)
  let end = Buffer.byteLength(json) + 1
  const record = Buffer.allocUnsafe(bytes.reduce((sum, part) => sum + (part?.length ?? 0), end))
  record.write(json)
  newline.copy(record, end - 1)
  for (const part of bytes) end += part?.copy(record, end) ?? 0
  return record
}

/** Reads a value of `encodeValue`: the JSON ends at the first line break. */
export function decodeValue<Header>(value: Buffer): { header: Header; payload: Buffer } {
  const end = value.indexOf(newline)
  return { header: JSON.parse(value.toString('utf8', 0, end)), payload: value.subarray(end + 1) }
}

const newline = Buffer.from('\n')
