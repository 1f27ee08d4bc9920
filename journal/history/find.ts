import { timeOfEventId } from '../../event/id.ts'
import { maxLivestreams } from '../../event/schema.ts'
import { feedbackTopic } from '../../event/topic.ts'
import type { Store } from '../../store/store.ts'
import { type Entry, everyPrefix, journalPrefix, padded, positionIn, readEntry } from '../entry.ts'
import type { Journal } from '../journal.ts'
import { readObject } from './event-row.ts'
import { positionAt } from './newest.ts'

/** Clocks of nodes differ by no more than this, milliseconds. */
const clockToleranceMs = 30_000
/** A publisher that repeats an event within this time gets the same id again, milliseconds. */
const repeatedMs = 3_600_000
/** Messages that are looked at for one id. */
const maxScanned = 10_000
/** Reports of one institution that are. */
const maxReports = 500
/** Between the last message of an event and its report there may be a few of other kinds. */
const maxBetween = 20

/** An event with its report, as far as they are kept. */
export interface Found {
  report: Entry | undefined
  /** One for each livestream. */
  messages: Entry[]
}

/** Finds single events: by the time in their id, or by a position. */
export function createFind({ store, journal }: { store: Store; journal: Journal }) {
  return {
    /** An event by its id; where it was sent several times, the first time that it was published. */
    async byId(id: string): Promise<Found | undefined> {
      const at = timeOfEventId(id)
      if (at === undefined) return undefined
      const from = await positionAt(store, journal.head(), at - clockToleranceMs)
      let scanned = 0
      let refused: Found | undefined
      for await (const [key, value] of store.range(journalPrefix, padded(from))) {
        const { entry, sharedWith } = readEntry(positionIn(key), value)
        if (entry.at > at + repeatedMs || ++scanned > maxScanned) break
        if (sharedWith !== undefined || !isAbout(entry, id)) continue
        const found = await around(entry.position)
        if (found && found.messages.length > 0) return found
        refused ??= found
      }
      return refused
    },

    /** The same, where an institution published it: looks at its reports only. */
    async ofInstitution(id: string, institutionId: string): Promise<Found | undefined> {
      const at = timeOfEventId(id)
      if (at === undefined) return undefined
      const from = await positionAt(store, journal.head(), at - clockToleranceMs)
      const prefix = `${everyPrefix}${encodeURIComponent(feedbackTopic(institutionId))}/`
      let scanned = 0
      let refused: Found | undefined
      for await (const [key] of store.range(prefix, padded(from))) {
        const report = await journal.get(positionIn(key))
        if (report && (report.at > at + repeatedMs || ++scanned > maxReports)) break
        if (!report || !isAbout(report, id)) continue
        const found = await around(report.position)
        if (found && found.messages.length > 0) return found
        refused ??= found
      }
      return refused
    },

    /** The event of a message or report at a position. */
    at: around,
  }

  async function around(position: number): Promise<Found | undefined> {
    const entry = await journal.get(position)
    if (!entry) return undefined
    const report = entry.isReport ? entry : await reportBehind(entry)
    if (!report) return { report, messages: [entry] }
    const { id, dryRun, outcome, services } = readObject(report.payload)
    if (outcome !== 'published' || dryRun === true || typeof id !== 'string') return { report, messages: [] }
    const count = Math.min(Array.isArray(services) ? services.length : 0, maxLivestreams)
    const first = Math.max(0, report.position - count - maxBetween)
    const messages: Entry[] = []
    for await (const [key, value] of store.range(journalPrefix, padded(first))) {
      const { position, ...before } = readEntry(positionIn(key), value).entry
      if (position >= report.position) break
      const isOther = before.isReport || before.stream === undefined || before.stream === before.topic
      const message = isOther ? undefined : await journal.get(position)
      if (message && isAbout(message, id)) messages.push(message)
    }
    // The same event may have been sent, and published, just before.
    return { report, messages: messages.slice(-count) }
  }

  /** The first report behind a message is that of its event: they were stored in one commit. */
  async function reportBehind({ position, payload }: Entry): Promise<Entry | undefined> {
    const { id } = readObject(payload)
    let scanned = 0
    for await (const [key, value] of store.range(journalPrefix, padded(position + 1))) {
      if (++scanned > maxLivestreams + maxBetween) return undefined
      const { entry } = readEntry(positionIn(key), value)
      if (entry.isReport) return isAbout(entry, String(id)) ? entry : undefined
    }
    return undefined
  }
}

/** Whether a message is an event with this id, or its report. */
function isAbout({ payload }: Entry, id: string): boolean {
  // Without reading all of them.
  return payload.includes(`"id":"${id}"`) && readObject(payload).id === id
}
