import { hash } from 'node:crypto'
import type { ErrorItem } from '../event/error.ts'
import { isRecord } from '../event/json.ts'
import { kindOf } from '../event/kind.ts'
import type { Excerpt, Message } from '../event/message.ts'
import { maxLivestreams, maxServices, type Service } from '../event/schema.ts'
import { feedbackTopic } from '../event/topic.ts'

/** Bytes that are kept of a refused event. */
const excerptBytes = 4_096

/** The outcome of one event: the payload of `feedback/{institutionId}` (design.md §7). */
export interface Report {
  outcome: 'published' | 'blocked' | 'invalid' | 'failed'
  /** Numbers of services. */
  statuses: { published: number; blocked: number; failed: number }
  event: string | null
  /** Assigned by the hub when published, else null. */
  id: string | null
  playlistItemId: string | null
  name: string | null
  eventTime: string | null
  services: string[]
  errors: ErrorItem[]
  /** The parts of a published event that could not be done; absent if there are none. */
  warnings?: ErrorItem[]
  receivedAt: string
  /** The beginning of the SHA-256 of the received payload: by it a publisher recognises its event. */
  payloadHash: string
  /** The hub only decided about the event. */
  dryRun?: true
  trace: null
}

/**
 * Describes an outcome. `value` is the payload as far as it could be read: nothing in it is trusted,
 * so every field is taken only where it has the right type.
 */
export function describeOutcome(
  outcome: Report['outcome'],
  value: unknown,
  details: {
    id?: string
    livestreams?: string[]
    errors?: ErrorItem[]
    warnings?: ErrorItem[]
    receivedAt: number
    /** The payload as it was received. */
    payload: Buffer
  },
): Report {
  const event = isRecord(value) ? value : {}
  const given = Array.isArray(event.services) ? event.services : []
  const services = details.livestreams ?? namedIn(given)
  const kind = kindOf(textOf(event.event) ?? '')
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
    name: kind?.class === 'control' ? textOf(event.name) : null,
    eventTime: textOf(event[kind?.timeField ?? 'start']),
    services,
    errors,
    ...(warnings.length > 0 && { warnings }),
    receivedAt: new Date(details.receivedAt).toISOString(),
    payloadHash: hash('sha256', details.payload, 'hex').slice(0, 16),
    trace: null,
  }
}

/** The event that a report is about. A part of it is kept if not all of it was published. */
export interface Source {
  payload: Buffer
  /** The payload as far as it could be read. */
  value: unknown
  /** Services for which the event is not published, although it is published for others. */
  refusedServices?: readonly Service[]
}

/**
 * A report as the messages that carry it to institutions: QoS 1, never retained, every one kept for an offline
 * publisher.
 */
export function feedbackMessages(
  institutions: readonly string[],
  report: Report,
  source?: Source,
): Message[] {
  const { payload, queue, hasErrors, refused } = keptReport(report, source)
  // Lists each field, because an object that is made by spreading takes three times as much memory.
  return institutions.map((institutionId) => {
    const topic = feedbackTopic(institutionId)
    return { topic, qos: 1, payload, queue, isReport: true, hasErrors, refused }
  })
}

/**
 * A report that stays in the history of an institution. No client gets it, because the publisher has had its answer
 * over HTTPS: no client may subscribe to its topic, and a returning session gets no message of QoS 0.
 */
export function answeredMessage(institutionId: string, report: Report, source: Source): Message {
  const topic = `answered/${institutionId}`
  return { topic, stream: feedbackTopic(institutionId), qos: 0, ...keptReport(report, source) }
}

/** The fields of a message with a report. Several institutions share the payload, so it is stored once. */
function keptReport(
  report: Report,
  source: Source | undefined,
): Pick<Message, 'payload' | 'queue' | 'isReport' | 'hasErrors' | 'refused'> {
  const payload = Buffer.from(JSON.stringify(report))
  const hasErrors = report.errors.length > 0
  const isElsewhere = !hasErrors && !report.dryRun
  const refused = source && !isElsewhere ? excerptOf(source) : undefined
  return { payload, queue: { keep: 'every' }, isReport: true, hasErrors: hasErrors || undefined, refused }
}

/** Copies the beginning of the event, so that the whole event does not stay in memory. */
function excerptOf({ payload, value, refusedServices = [] }: Source): Excerpt {
  const event = isRecord(value) ? value : {}
  return {
    ...{ head: Buffer.from(payload.subarray(0, excerptBytes)), bytes: payload.length },
    ...{ title: textOf(event.title), artist: textOf(event.artist) },
    ...(refusedServices.length > 0 && { refusedServices: namedIn(refusedServices) }),
  }
}

/** Services that name different livestreams. A livestream that is named both with and without its id counts once. */
export function eachOnce(services: readonly unknown[]): { id: string | null; externalId: string | null }[] {
  const given = services
    .filter(isRecord)
    .map(({ id, externalId }) => ({ id: textOf(id), externalId: textOf(externalId) }))
  const known = new Set(given.flatMap(({ id, externalId }) => (id === null ? [] : [externalId])))
  const named = given.filter(({ id, externalId }) => id !== null || !known.has(externalId))
  return [...new Map(named.map((service) => [`${service.id} ${service.externalId}`, service])).values()]
}

/** The names of livestreams, as many as an event may have. */
function namedIn(services: readonly unknown[]): string[] {
  const named = eachOnce(services.slice(0, maxServices)).flatMap(
    ({ id, externalId }) => id ?? externalId ?? [],
  )
  return [...new Set(named)].slice(0, maxLivestreams)
}

/** Cuts long texts: a report repeats texts only so that the publisher recognises its event. */
function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value.slice(0, 500) : null
}
