import { timeOfEventId } from '../../event/format.ts'
import { maxLivestreams } from '../../event/schema.ts'
import { feedbackTopic } from '../../event/topic.ts'
import { digitsOf } from '../../store/commit.ts'
import type { Store } from '../../store/store.ts'
import {
  clockToleranceMs,
  type Entry,
  everyPrefix,
  journalKey,
  positionIn,
  readEntry,
  storedEntries,
} from '../entry.ts'
import type { Journal } from '../journal.ts'
import { readObject } from './event-row.ts'
import { positionAt } from './newest.ts'

/** An event that is repeated within this time keeps its id, milliseconds. */
const repeatedMs = 3_600_000
/** Limits of the search for one id: checked messages, and bytes read. */
const maxScanned = { entries: 10_000, bytes: 64 * 1024 * 1024 }
/** The search for one id checks at most this many reports of an institution. */
const maxReports = 500
/** The search collects this many positions of reports, and then reads these reports together. */
const positionsAtOnce = 50
/** In a commit, at most this many other messages lie between an event and its report. */
const maxBetween = 20

/** The parts of an event and of its report that the journal still has. */
export interface Found {
  report: Entry | undefined
  /** The messages that carry the event: one for each livestream. */
  messages: Entry[]
}

/** The result of a search. */
interface EventSearch {
  found?: Found | undefined
  /** False if a limit ended the search before all messages were checked. */
  isWhole: boolean
}

/** Messages for the search, in order. The search does not check a message without `entry`, but counts its bytes. */
type Candidates = AsyncIterable<{ entry?: Entry | undefined; bytes: number }>

interface FindParts {
  store: Store
  journal: Journal
}

/** Finds a single event: by its id, which contains a time, or by a position. */
export function createFind({ store, journal }: FindParts) {
  const all = (from: number, end: number) => everything(store, from, end)

  return {
    /** Finds an event by its id. Of several publications, finds the first. */
    byId: (id: string): Promise<EventSearch> => search(id, all, maxScanned),

    /**
     * Finds an event of this institution by its id: first in the institution's reports, then in those messages whose reports
     * may be removed. Neither the answer nor its duration says that another institution has this event.
     */
    async ofInstitution(id: string, institutionId: string): Promise<EventSearch> {
      const prefix = `${everyPrefix}${encodeURIComponent(feedbackTopic(institutionId))}/`
      const most = { ...maxScanned, entries: maxReports }
      const reported = await search(id, (from, end) => reports({ store, journal }, prefix, from, end), most)
      if (reported.found) return reported
      const isOwn = (message: Entry | undefined) => message?.institutionId === institutionId
      // From the floor on, the journal has every report.
      const old = (from: number, end: number) => all(from, Math.min(end, journal.floor()))
      const { found } = await search(id, old, maxScanned, isOwn)
      return { found: isOwn(found?.messages[0]) ? found : undefined, isWhole: reported.isWhole }
    },

    /** The event of a message or report at a position. Of one that is not meant, nothing more is read. */
    at: eventAt,
  }

  async function search(
    id: string,
    candidates: (from: number, end: number) => Candidates,
    most: typeof maxScanned,
    isMeant = isAny,
  ): Promise<EventSearch> {
    const at = timeOfEventId(id)
    if (at === undefined) return { isWhole: true }
    let { entries, bytes } = most
    let refused: Found | undefined
    for await (const { from, end } of rangesToSearch({ store, journal }, at)) {
      for await (const { entry, bytes: size } of candidates(from, end)) {
        bytes -= size
        if (entry) entries--
        if (entries < 0 || bytes < 0) return { found: refused, isWhole: false }
        if (!entry || !isMeant(entry) || !isAbout(entry, id)) continue
        const found = await eventAt(entry.position)
        if (found && found.messages.length > 0) return { found, isWhole: true }
        refused ??= found
      }
    }
    return { found: refused, isWhole: true }
  }

  async function eventAt(position: number, isMeant = isAny): Promise<Found | undefined> {
    const entry = await journal.get(position)
    if (!entry || !isMeant(entry)) return undefined
    const report = entry.isReport ? entry : await reportBehind(store, entry)
    if (!report) return { report, messages: await sharingWith({ store, journal }, position) }
    const { id, dryRun, outcome, services } = readObject(report.payload)
    if (outcome !== 'published' || dryRun === true || typeof id !== 'string') return { report, messages: [] }
    const count = Math.min(Array.isArray(services) ? services.length : 0, maxLivestreams)
    const first = Math.max(0, report.position - count - maxBetween)
    const messages: Entry[] = []
    for await (const { entry } of storedEntries(store, { from: first, before: report.position })) {
      const isOther = entry.isReport || entry.stream === undefined || entry.stream === entry.topic
      const message = isOther ? undefined : await journal.get(entry.position)
      if (message && isAbout(message, id)) messages.push(message)
    }
    // If there are more than `count` messages, the first ones are of an earlier publication of the event.
    return { report, messages: messages.slice(-count) }
  }
}

/**
 * Parts of the journal in the order of search, for an event that got its id at `at`. The last part has possible
 * repetitions of the event.
 */
async function* rangesToSearch(
  { store, journal }: FindParts,
  at: number,
): AsyncGenerator<{ from: number; end: number }> {
  const positionOf = (instant: number) => positionAt(store, journal.head(), instant)
  const from = await positionOf(at)
  const end = await positionOf(at + clockToleranceMs)
  yield { from, end }
  yield { from: await positionOf(at - clockToleranceMs), end: from }
  yield { from: end, end: await positionOf(at + repeatedMs) }
}

async function* everything(store: Store, from: number, before: number): Candidates {
  for await (const { entry, sharedWith, bytes } of storedEntries(store, { from, before })) {
    // Of messages that share a payload, the search checks only the first, which holds it.
    yield { entry: sharedWith === undefined ? entry : undefined, bytes }
  }
}

async function* reports(
  { store, journal }: FindParts,
  prefix: string,
  from: number,
  end: number,
): Candidates {
  let positions: number[] = []
  for await (const [key] of store.range(prefix, { from: digitsOf(from), before: digitsOf(end) })) {
    positions.push(positionIn(key))
    if (positions.length < positionsAtOnce) continue
    yield* entriesAt(journal, positions)
    positions = []
  }
  yield* entriesAt(journal, positions)
}

async function* entriesAt(journal: Journal, positions: readonly number[]): Candidates {
  for (let next = 0; next < positions.length; ) {
    const entries = await journal.getFirst(positions.slice(next))
    for (const entry of entries) yield { entry, bytes: entry?.payload.length ?? 0 }
    next += entries.length
  }
}

/** All messages that share a payload with the message at `position`. The first of them holds the payload. */
async function sharingWith({ store, journal }: FindParts, position: number): Promise<Entry[]> {
  const value = await store.get(journalKey(position))
  const first = position - ((value && readEntry(position, value).sharedWith) ?? 0)
  const messages: Entry[] = []
  const possible = storedEntries(store, { from: first, before: first + maxLivestreams })
  for await (const { entry, sharedWith = 0 } of possible) {
    const message = entry.position - sharedWith === first ? await journal.get(entry.position) : undefined
    if (message) messages.push(message)
  }
  return messages
}

/** The first report after the message: one commit stored the message and its report. */
async function reportBehind(store: Store, { position, payload }: Entry): Promise<Entry | undefined> {
  const { id } = readObject(payload)
  const next = storedEntries(store, { from: position + 1, most: maxLivestreams + maxBetween })
  for await (const { entry } of next) {
    if (entry.isReport) return isAbout(entry, String(id)) ? entry : undefined
  }
  return undefined
}

function isAny(_entry: Entry): boolean {
  return true
}

/** Whether a message is an event with this id, or its report. */
function isAbout({ payload }: Entry, id: string): boolean {
  // This search in the bytes comes first, because it saves parsing every payload.
  return payload.includes(`"id":"${id}"`) && readObject(payload).id === id
}
