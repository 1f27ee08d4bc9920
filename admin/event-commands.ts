import { isUtf8 } from 'node:buffer'
import type { AcceptedEvent, EventDelivery } from '../delivery/event-deliveries.ts'
import { parseInstant } from '../event/format.ts'
import type { Excerpt } from '../event/message.ts'
import type { Entry } from '../journal/entry.ts'
import {
  type EventRow,
  isAsked,
  isOf,
  type RowFilter,
  readObject,
  rowOfMessage,
  rowOfReport,
} from '../journal/history/event-row.ts'
import type { Found } from '../journal/history/find.ts'
import type { History } from '../journal/history/history.ts'
import type { Args, CommandsOf } from '../operations/operations.ts'
import { refusal, unknownName } from '../operations/refusal.ts'
import { createTail } from './event-tail.ts'
import type { createEventTrace } from './event-trace.ts'

/** The parts of a node that know of events. */
export interface EventCommandParts {
  events: {
    history: History
    trace: ReturnType<typeof createEventTrace>
    /** The livestreams with this id, external id or title, and their institutions (`owner`). */
    livestreams(name: string): Promise<readonly { id: string; externalId?: string; owner?: string }[]>
    /**
     * All livestreams of the feed, and others with retained events. Of each, the retained event that was accepted last.
     * Null: no event is retained, or the feed does not say.
     */
    newest(): Promise<readonly NewestEvent[]>
    /** All institutions of the livestream feed. */
    institutions(): readonly string[]
    deliveries(event: AcceptedEvent): Promise<EventDelivery[]>
    /** Whether a message is the retained value of its topic. */
    isRetained(topic: string, position: number): boolean
  }
}

/** A livestream, and when an event of it was accepted last. */
export interface NewestEvent {
  at: string | null
  eventTime: string | null
  livestream: { id: string; externalId: string | null; title: string | null; isListed: boolean }
  institution: { id: string | null; title: string | null }
}

/** The arguments that select events. */
type Asked = Args<'events.tail'>

const defaultLimit = 50
/** A number with more digits is the id of an event. */
const maxPositionDigits = 16

/** Commands about what became of events (design.md §4), for the people who support broadcasters. */
export function createEventCommands({ events }: EventCommandParts): CommandsOf<'events'> {
  const { history, trace } = events
  const tail = createTail(history.onDecided)

  return {
    'events.list': async (args) => {
      const { institutionId, livestream } = await scopeOf(args)
      const { limit = defaultLimit } = args
      const everybody = livestream ? [] : events.institutions()
      return history.list({
        ...(livestream && { livestream }),
        institutionIds: institutionId === undefined ? everybody : [institutionId],
        ...{
          limit,
          ...filterOf(args),
          ...(typeof args.since === 'number'
            ? { from: args.since }
            : { since: instant('since', args.since) }),
          before: await positionOf(args.before),
        },
      })
    },

    'events.show': async (args) => {
      const id = args.id
      const isPosition = /^[0-9]+$/.test(id) && id.length <= maxPositionDigits
      const { found, isWhole } = isPosition
        ? { found: await history.find.at(Number(id)), isWhole: true }
        : await history.find.byId(id)
      if (found) return shown(found)
      if (isWhole) throw unknownName('event that is still kept with', id)
      throw refusal(`there were too many events around the time of ${id}: show it by its position in a list`)
    },

    'events.tail': async ({ after, ...args }) => {
      const { institutionId, livestream } = await scopeOf(args)
      const filter = filterOf(args)
      const isMeant = (row: EventRow) =>
        isAsked(row, filter) &&
        (institutionId === undefined || row.institutionId === institutionId) &&
        (livestream === undefined || isOf(row, livestream, filter.outcome))
      if (after === undefined) return tail(isMeant)
      const { events, ...rest } = await history.since(after === 'now' ? undefined : after)
      return { events: events.filter(isMeant), ...rest }
    },

    'events.newest': async ({ institution, limit }) => {
      const isAsked = ({ id }: { id: string | null }) => institution === undefined || id === institution
      const asked = (await events.newest()).filter((row) => isAsked(row.institution))
      return asked.sort((a, b) => order(a.at) - order(b.at)).slice(0, limit)
    },

    'events.slow': async () =>
      (await trace.slowest()).map(({ at, ...event }) => ({ ...event, at: new Date(at).toISOString() })),
  }

  /** The livestream or institution whose events are asked for. Empty: all institutions. */
  async function scopeOf({ livestream: name, institution: institutionId }: Asked) {
    if (name !== undefined && institutionId !== undefined)
      throw refusal('livestream and institution cannot be given together')
    if (name !== undefined) {
      const [found, ...others] = await events.livestreams(name)
      if (!found) throw unknownName('livestream', name)
      const isTitle = found.id !== name && found.externalId !== name
      if (isTitle && others.length > 0)
        throw refusal(
          `${others.length + 1} livestreams are called ${JSON.stringify(name)}: give the id of one`,
        )
      return { livestream: found }
    }
    return institutionId === undefined ? {} : { institutionId }
  }

  async function positionOf(before: Args<'events.list'>['before']): Promise<number | undefined> {
    if (typeof before === 'number') return before
    const at = instant('before', before)
    return at === undefined ? undefined : history.positionAt(at)
  }

  async function shown({ report, messages }: Found) {
    const [message] = messages
    const event = message ? readObject(message.payload) : undefined
    const said = report ? readObject(report.payload) : null
    const row = report && said ? rowOfReport(report, said, event) : message && rowOfMessage(message)
    if (!row) throw new Error('an event was found without a report and without a message')
    const positions = messages.map(({ position }) => position)
    const newer = await history.newerThan(messages)
    const traces = await trace.of(positions)
    const accepted = traces.find(({ stages }) => stages !== null)
    const id = row.outcome === 'published' && !row.dryRun ? row.id : null
    return {
      ...row,
      published: event ?? null,
      report: said,
      refused: report?.refused ? excerpt(report.refused) : null,
      creator: report?.creator ?? null,
      topics: messages.map(({ topic, position, retained }, nth) => ({
        ...{ topic, position },
        validUntil: retained?.expires === undefined ? null : new Date(retained.expires).toISOString(),
        ...shownOrNewer(events.isRetained(topic, position), newer[nth]),
      })),
      nodes: traces.map(({ node, recipients }) => ({ node, recipients })),
      stages: accepted?.stages ? { node: accepted.node, ...stagesOf(accepted.stages) } : null,
      deliveries:
        id === null
          ? []
          : // Uses the row of the event, because its messages may be removed already.
            await events.deliveries({
              ...{ id, event: row.event ?? '', at: Date.parse(row.at) },
              livestreamIds: row.services,
            }),
    }
  }
}

/**
 * `retained`: whether the message is the retained value of its topic. `newer`: the message that kept this message from
 * ever being retained. Null: this message is or was retained, or the other message is not known.
 */
function shownOrNewer(retained: boolean, newer: Entry | undefined) {
  return { retained, newer: retained ? null : summaryOf(newer) }
}

/** A few fields of the event of a message. */
function summaryOf(message: Entry | undefined) {
  if (!message) return null
  const { position, id, title, eventTime } = rowOfMessage(message)
  return { position, id, title, eventTime }
}

/** Returns only the times of the three stages, without the other fields of `EventStages`. */
function stagesOf({ decided, stored, written }: { decided: number; stored: number; written: number }) {
  return { decided, stored, written }
}

function filterOf({ outcome, item }: Asked): RowFilter {
  return { outcome, playlistItemId: item }
}

function instant(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  const at = parseInstant(value)
  if (at === undefined) throw refusal(`${name} must be an instant such as 2026-03-01T18:02:00+01:00`)
  return at
}

/** The beginning of a refused payload, as text or else in base64. */
function excerpt({ head, bytes }: Excerpt) {
  // If the payload is cut within a character, the one to three bytes of that character are left out.
  const ends = head.length < bytes ? [0, 1, 2, 3] : [0]
  const end = ends.map((cut) => head.length - cut).find((length) => isUtf8(head.subarray(0, length)))
  const content =
    end === undefined ? { base64: head.toString('base64') } : { text: head.toString('utf8', 0, end) }
  return { bytes, isWhole: head.length === bytes, ...content }
}

/** Those without an event come first. */
function order(at: string | null): number {
  return at === null ? 0 : Date.parse(at)
}
