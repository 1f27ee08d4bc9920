import { setImmediate as nextTurn } from 'node:timers/promises'
import { feedbackTopic } from '../../event/topic.ts'
import type { Store } from '../../store/store.ts'
import { clockToleranceMs, type Entry, type IndexEntry, indexPrefix } from '../entry.ts'
import type { Journal } from '../journal.ts'
import {
  type EventRow,
  isAsked,
  isOf,
  type LivestreamIds,
  type RowFilter,
  readObject,
  rowOfMessage,
  rowOfReport,
} from './event-row.ts'
import { createFind } from './find.ts'
import { createNewerThan } from './newer-than.ts'
import { indexesOf, newestFirst, positionAt } from './newest.ts'

export type History = ReturnType<typeof createHistory>

/** The events to list. */
export interface Query extends RowFilter {
  /**
   * Lists the accepted messages of this livestream. `owner`: also lists refused events of this institution for the
   * livestream.
   */
  livestream?: LivestreamIds & { owner?: string | undefined }
  /** Lists all events of these institutions, with any outcome. */
  institutionIds?: readonly string[]
  /** Only events decided at this instant or later, milliseconds since the epoch. */
  since?: number | undefined
  /** Only events at this position or later. */
  from?: number | undefined
  /** Only events before this position. */
  before?: number | undefined
  limit: number
  /** Further condition for the listed events. */
  isMeant?: ((row: EventRow) => boolean) | undefined
}

/** The parsed payload of a report. */
type ReportFields = Record<string, unknown>

/** A page of events, the newest first. */
export interface EventPage {
  events: EventRow[]
  /** The `before` for the next page. Null: there are no more events. */
  next: number | null
}

/** An answer of `since`. The comment on `since` explains the fields. */
interface Since {
  events: EventRow[]
  next: number
  leftOut: number | null
}

/** Limits of the work for one page: index entries, and bytes of payloads. */
const maxScanned = { entries: 2_000, bytes: 32 * 1024 * 1024 }
/** A page of several messages has at most this many bytes of payloads. */
const maxPageBytes = 256 * 1024
/** A list reads this many messages at the same time. */
const readAtOnce = 10
/** Maximum number of events in one answer of `since`. */
const maxSince = 200

/** The history of events. Every answer is read from the journal. */
export function createHistory({ store, journal }: { store: Store; journal: Journal }) {
  const listeners = new Set<(row: EventRow) => void>()
  /** Stops listening to the journal. Does nothing while there are no listeners. */
  let leave = () => {}

  return {
    find: createFind({ store, journal }),

    newerThan: createNewerThan({ store, journal }),

    /** Returns a page of events. Even a short page can have a next page. */
    async list(query: Query): Promise<EventPage> {
      const { livestream, institutionIds = [], since = 0, from = 0, before = Infinity, limit } = query
      const { isMeant = () => true } = query
      const owners = [...institutionIds, livestream?.owner].filter((id) => id !== undefined)
      const indexes = [...(livestream ? indexesOf(livestream.id) : []), ...owners.map(reportsOf)]
      const newest = newestFirst(store, indexes, Math.min(before, journal.head() + 1))
      const events: EventRow[] = []
      let scanned = 0
      let bytes = 0
      const get = async (position: number) => {
        const entry = await journal.get(position)
        bytes += entry?.payload.length ?? 0
        return entry
      }
      for (;;) {
        const { entries, isLast } = await take(newest, { since: since - clockToleranceMs, from })
        for (const row of await Promise.all(entries.map((entry) => rowAt(entry, query, get)))) {
          if (!row || Date.parse(row.at) < since || !isAsked(row, query) || !isMeant(row)) continue
          if (events.push(row) === limit) {
            const isWhole = isLast && row.position <= (entries.at(-1)?.position ?? 0)
            return { events, next: isWhole ? null : row.position }
          }
        }
        if (isLast) return { events, next: null }
        scanned += entries.length
        const isTooMuch = scanned >= maxScanned.entries || bytes >= maxScanned.bytes
        if (isTooMuch) return { events, next: entries.at(-1)?.position ?? null }
        // Lets other work proceed, so that publishers do not wait for a whole page.
        await nextTurn()
      }
    },

    /** Returns a page of the messages of a livestream, the newest first. */
    async messages(
      livestreamId: string,
      { before = Infinity, limit }: { before?: number | undefined; limit: number },
    ): Promise<{ messages: Entry[]; next: number | null }> {
      const messages: Entry[] = []
      let bytes = 0
      const newest = newestFirst(store, indexesOf(livestreamId), Math.min(before, journal.head() + 1))
      for await (const { position } of newest) {
        const last = messages.at(-1)?.position
        if (last !== undefined && messages.length === limit) return { messages, next: last }
        const message = await journal.get(position)
        if (!message) continue
        bytes += message.payload.length
        if (last !== undefined && bytes > maxPageBytes) return { messages, next: last }
        messages.push(message)
        // Messages in memory are read without a wait, so that others would wait for the whole page.
        if (messages.length % readAtOnce === 0) await nextTurn()
      }
      return { messages, next: null }
    },

    /**
     * Returns the newest events that any node decided after position `after`, in order. `leftOut`: how many more such
     * events there were, null if unknown. `next`: the `after` of the next call. `next` is never below the `after` of
     * this call.
     */
    async since(after = journal.head()): Promise<Since> {
      const next = Math.max(after, journal.head())
      const { found, leftOut } = journal.reportsAfter(after, maxSince)
      const entries = await Promise.all(found.map(journal.get))
      const reports = entries.filter((entry) => entry !== undefined)
      return { events: reports.map(recentRow), next, leftOut }
    },

    positionAt: (at: number): Promise<number> => positionAt(store, journal.head(), at),

    /** Calls `listener` with each event that any node decides. The returned function ends the calls. */
    onDecided(listener: (row: EventRow) => void): () => void {
      if (listeners.size === 0) leave = journal.onEach(tell)
      listeners.add(listener)
      return () => {
        if (listeners.delete(listener) && listeners.size === 0) leave()
      }
    },
  }

  /** Makes one row for all listeners, because publishers wait until this function returns. */
  function tell(entry: Entry): void {
    if (!entry.isReport) return
    const row = recentRow(entry)
    for (const listener of listeners) listener(row)
  }

  /**
   * The row of a new report. Title and artist come from the excerpt in the report (`refused`) if there is one, or else
   * from the published event. Null: that event is no longer in memory.
   */
  function recentRow(entry: Entry): EventRow {
    const report = readObject(entry.payload)
    const first = firstMessageOf(entry, report)
    return rowOfReport(
      entry,
      report,
      eventOf(report, first === undefined ? undefined : journal.recent(first)),
    )
  }
}

/** The row for an index entry. Undefined: the list leaves the entry out. */
async function rowAt(
  { position, isReport, hasErrors }: IndexEntry,
  { livestream, outcome }: Query,
  get: Journal['get'],
): Promise<EventRow | undefined> {
  // Published events are listed by their messages: reading the reports would be wasted.
  if (livestream && isReport && !hasErrors) return undefined
  const entry = await get(position)
  if (!entry) return undefined
  if (!isReport) return rowOfMessage(entry)
  const report = readObject(entry.payload)
  if (livestream) {
    const row = rowOfReport(entry, report)
    const isListed = row.outcome === 'published' && !row.dryRun && isOf(row, livestream, 'published')
    return !isListed && isOf(row, livestream, outcome) ? row : undefined
  }
  const first = entry.refused ? undefined : firstMessageOf(entry, report)
  return rowOfReport(entry, report, eventOf(report, first === undefined ? undefined : await get(first)))
}

async function take(newest: AsyncGenerator<IndexEntry>, { since, from }: { since: number; from: number }) {
  const entries: IndexEntry[] = []
  while (entries.length < readAtOnce) {
    const { value, done } = await newest.next()
    if (done || value.at < since || value.position < from) return { entries, isLast: true }
    entries.push(value)
  }
  return { entries, isLast: false }
}

function eventOf(report: ReportFields, message: Entry | undefined): Record<string, unknown> {
  const event = message ? readObject(message.payload) : {}
  return event.id === report.id ? event : {}
}

/** Position of the first message of a published event. One message per livestream stands directly before the report. */
function firstMessageOf(
  { position }: Entry,
  { outcome, dryRun, services }: ReportFields,
): number | undefined {
  if (outcome !== 'published' || dryRun === true || !Array.isArray(services)) return undefined
  return position - services.length
}

/** The index prefix below which the reports of an institution are listed. */
function reportsOf(institutionId: string): string {
  return indexPrefix({ queue: { keep: 'every' }, topic: feedbackTopic(institutionId) })
}
