import { hash } from 'node:crypto'
import type { Static } from 'typebox'
import { textOf } from '../event/cut.ts'
import type { ErrorItem } from '../event/error.ts'
import { isRecord } from '../event/json.ts'
import { type EventKind, type HubEvent, kindByName, slotOf } from '../event/kind.ts'
import type { Excerpt, Message } from '../event/message.ts'
import type { feedback } from '../event/outcome-schemas.ts'
import { maxLivestreams, maxServices, type Service } from '../event/schema.ts'
import { feedbackTopic, radioTopic } from '../event/topic.ts'
import type { Arrival } from './decide.ts'

/**
 * Makes the messages of the radio tree for an accepted event, one per livestream. The class of the event decides about
 * retained values and returning sessions (service.md §6.3, design.md §7).
 */
export function radioMessages(
  event: HubEvent,
  /** The event as JSON. */
  payload: Buffer,
  shape: {
    kind: EventKind
    /** Event time, milliseconds since the epoch. */
    time: number
    /** When the event ends, milliseconds since the epoch. */
    expires?: number | undefined
  },
  of: {
    /** The institution that publishes the event. */
    institutionId: string
    livestreamIds: readonly string[]
    now: number
  },
): Message[] {
  const { institutionId, livestreamIds, now } = of
  const { retained, queue } = rulesOf(event, shape, now)
  return livestreamIds.map((stream) => {
    const topic = radioTopic(stream, shape.kind)
    return { topic, stream, institutionId, payload, qos: 1, retained, queue }
  })
}

function rulesOf(
  event: HubEvent,
  { kind, time, expires }: Parameters<typeof radioMessages>[2],
  now: number,
): Required<Pick<Message, 'retained' | 'queue'>> {
  const { keep, cycleField } = kind
  const fields: Readonly<Record<string, unknown>> = event
  const until = expires === undefined ? {} : { expires }
  const owed = cycleField === undefined ? until : { expires: now + Number(fields[cycleField]) * 1000 }
  return { retained: { slot: slotOf(event, kind), time, ...until }, queue: { keep, time, ...owed } }
}

/** Maximum number of bytes that are kept of a refused event, from its beginning. */
const excerptBytes = 4_096

/** The outcome of one event: the payload of `feedback/{institutionId}` (design.md §7). */
export type Report = Static<typeof feedback>

/** Makes the report of an event. `value`: the readable part of the payload. A field of the wrong type becomes null. */
export function describeOutcome(
  outcome: Report['outcome'],
  value: unknown,
  details: {
    id?: string
    livestreams?: string[]
    errors?: ErrorItem[]
    warnings?: ErrorItem[]
    arrival: Pick<Arrival, 'at' | 'clientId'>
    /** The payload as it was received. */
    payload: Buffer
  },
): Report {
  const event = isRecord(value) ? value : {}
  const given = Array.isArray(event.services) ? event.services : []
  const services = details.livestreams ?? namedIn(given)
  const kind = kindByName.get(textOf(event.event) ?? '')
  const { errors = [], warnings = [] } = details
  return {
    outcome,
    statuses: {
      published: outcome === 'published' ? services.length : 0,
      blocked: outcome === 'blocked' ? services.length : 0,
      failed: outcome === 'failed' ? services.length : 0,
    },
    event: textOf(event.event),
    id: details.id ?? null,
    playlistItemId: textOf(event.playlistItemId),
    name: kind?.slotField === undefined ? null : textOf(event[kind.slotField]),
    eventTime: textOf(event[kind?.timeField ?? 'start']),
    services,
    errors,
    ...(warnings.length > 0 && { warnings }),
    receivedAt: new Date(details.arrival.at).toISOString(),
    clientId: details.arrival.clientId,
    payloadHash: hash('sha256', details.payload, 'hex').slice(0, 16),
    trace: null,
  }
}

/**
 * The event that a report is about. If the report has errors, the beginning of the event is stored with the report. The
 * same holds for the report of a dry run.
 */
export interface Source {
  payload: Buffer
  /** The readable part of the payload. */
  value: unknown
  /** Who made the event: only the history gets this. */
  creator?: string | undefined
  /** Services for which the event is not published, although it is published for others. */
  refusedServices?: readonly Service[]
}

/** Makes the messages that carry a report to institutions. A publisher that was away gets all of them later. */
export function feedbackMessages(
  institutions: readonly string[],
  report: Report,
  source?: Source,
): Message[] {
  const { payload, queue, hasErrors, refused, creator } = keptReport(report, source)
  // List each field: spreading would make objects three times as large.
  return institutions.map((institutionId) => {
    const topic = feedbackTopic(institutionId)
    return { topic, qos: 1, payload, queue, isReport: true, hasErrors, refused, creator }
  })
}

/**
 * Makes a message for the history of an institution. No client gets the message: `docs/decisions`, "Events over
 * HTTPS have a report that is not sent".
 */
export function answeredMessage(institutionId: string, report: Report, source: Source): Message {
  const topic = `answered/${institutionId}`
  return { topic, stream: feedbackTopic(institutionId), qos: 0, ...keptReport(report, source) }
}

/** The fields that a report gives to its messages. The messages share one payload. */
function keptReport(
  report: Report,
  source: Source | undefined,
): Pick<Message, 'payload' | 'queue' | 'isReport' | 'hasErrors' | 'refused' | 'creator'> {
  const payload = Buffer.from(JSON.stringify(report))
  const hasErrors = report.errors.length > 0
  const isElsewhere = !hasErrors && !report.dryRun
  const refused = source && !isElsewhere ? excerptOf(source) : undefined
  const { creator } = source ?? {}
  return {
    payload,
    queue: { keep: 'every' },
    isReport: true,
    hasErrors: hasErrors || undefined,
    refused,
    creator,
  }
}

/**
 * Copies the first bytes of the event. Without a copy, the excerpt would share the memory of the whole event. The whole
 * event would then stay in memory.
 */
function excerptOf({ payload, value, refusedServices = [] }: Source): Excerpt {
  const event = isRecord(value) ? value : {}
  return {
    head: Buffer.from(payload.subarray(0, excerptBytes)),
    bytes: payload.length,
    title: textOf(event.title),
    artist: textOf(event.artist),
    ...(refusedServices.length > 0 && { refusedServices: namedIn(refusedServices) }),
  }
}

/**
 * Returns each service once. A service may be listed twice: with its `id` and without. Then only the one with the `id`
 * stays.
 */
export function eachOnce(services: readonly unknown[]): { id: string | null; externalId: string | null }[] {
  const given = services
    .filter(isRecord)
    .map(({ id, externalId }) => ({ id: textOf(id), externalId: textOf(externalId) }))
  const known = new Set(given.flatMap(({ id, externalId }) => (id === null ? [] : [externalId])))
  const named = given.filter(({ id, externalId }) => id !== null || !known.has(externalId))
  return [...new Map(named.map((service) => [`${service.id} ${service.externalId}`, service])).values()]
}

/** The livestreams that services name, by `id` or else by `externalId`. At most `maxLivestreams`. */
function namedIn(services: readonly unknown[]): string[] {
  const named = eachOnce(services.slice(0, maxServices)).flatMap(
    ({ id, externalId }) => id ?? externalId ?? [],
  )
  return [...new Set(named)].slice(0, maxLivestreams)
}
