import { type ErrorItem, errorItem, outcomeOf } from '../event/error.ts'
import { parseJson } from '../event/json.ts'
import type { EventClass, EventKind, HubEvent } from '../event/kind.ts'
import { maxLivestreams, type Service } from '../event/schema.ts'
import { checkShape, tooManyLivestreams } from '../event/shape.ts'
import type { Change } from '../store/store.ts'
import { type Dialects, type Read, readDialect } from './dialect.ts'
import type { Feed, Livestream } from './feed/feed.ts'

/** An event with the permissions of its publisher. The rules for MQTT apply to it. */
export interface Submission {
  payload: Buffer
  /** Institution of the inbox topic: the publisher was permitted to publish for it. */
  institutionId: string
  /** The class that the inbox topic names, if any. */
  topicClass?: EventClass | undefined
  /** The classes to which the credential is limited. Empty: all classes. */
  allowedClasses: readonly EventClass[]
  /** The institutions that get the report, by default `institutionId`. */
  reportTo?: readonly string[]
}

/** When and from whom an event came in, and the changes that come with it. */
export interface Arrival {
  /** Wall clock, milliseconds since the epoch. */
  at: number
  /** `performance.now()` when the last byte arrived: the start of the time budget (220 ms). */
  started: number
  /** MQTT client id of the publisher; null over HTTPS. */
  clientId: string | null
  /** Changes for the commit of the decision, for example the receipt of a QoS 2 packet. */
  alongside?: readonly Change[]
}

/** Charges the publisher for an event. `livestreams`: the number of livestreams that the event is for. */
export type Charge<From extends Arrival> = (arrival: From, livestreams: number) => void

export type Decision =
  | {
      outcome: 'published'
      event: HubEvent
      kind: EventKind
      /** Event time, milliseconds since the epoch. */
      time: number
      /** When the event ends (`kind.endField`), milliseconds since the epoch. */
      expires: number | undefined
      /** The livestream of each service, in the order of `event.services`. */
      livestreams: Livestream[]
      /** Their ids, without repetitions. */
      livestreamIds: string[]
      /** What the publisher should know of an event that is published all the same (open.md §2, §3). */
      warnings: readonly ErrorItem[]
      /** Who made the event, as its publisher says (`validator/dialect.ts`). */
      creator: string | undefined
      /** The event has values of the livestream feed, so it would differ after a change of the feed. */
      isCompletedFromFeed: boolean
    }
  | {
      outcome: 'invalid' | 'blocked'
      errors: ErrorItem[]
      /** The readable part of the payload, for the report. */
      value: unknown
      creator: string | undefined
    }

/** Largest payload in bytes (service.md §8: 400 kb). */
export const maxPayloadBytes = 400 * 1024

/** Maximum bytes of all messages for one event. One commit stores all of them. */
const maxTotalBytes = 8 * 1024 * 1024

/** Reads a payload as JSON, unless it is too large. */
export function parsePayload(payload: Buffer): ReturnType<typeof parseJson> {
  if (payload.length <= maxPayloadBytes) return parseJson(payload)
  const detail = `${payload.length} bytes, expected at most ${maxPayloadBytes}`
  return { errors: [errorItem('payload.size', '.', detail)] }
}

/** Checks the number of different livestreams, and the bytes of the messages for all of them. */
export function checkTotalSize(payload: Buffer, count: number): ErrorItem[] {
  if (count > maxLivestreams) return [tooManyLivestreams(count)]
  if (payload.length * count <= maxTotalBytes) return []
  const detail = `${payload.length} bytes for ${count} livestreams, expected at most ${maxTotalBytes} bytes over all of them`
  return [errorItem('payload.size', '.services', detail)]
}

/** Largest event on its way out, bytes: with completed services, and numbers that JSON.stringify writes longer. */
const maxOutgoingBytes = maxPayloadBytes + 64 * 1024
/** A payload this small with so few services does not become so large: numbers become at most four times as long. */
const smallBytes = 64 * 1024
const fewServices = 50

/**
 * Checks how large an event becomes: short names of livestreams may have long ids and external ids. `services` makes
 * those of the event, completed.
 */
export function checkOutgoingSize(
  payload: Buffer,
  event: HubEvent,
  services: () => readonly Service[],
): ErrorItem[] {
  if (payload.length <= smallBytes && event.services.length <= fewServices) return []
  const bytes = Buffer.byteLength(JSON.stringify({ ...event, services: services() }))
  if (bytes <= maxOutgoingBytes) return []
  const detail = `${payload.length} bytes become ${bytes} with completed services and written-out numbers, expected at most ${maxOutgoingBytes}`
  return [errorItem('payload.size', '.', detail)]
}

/** The services as subscribers get them: with the ids of their livestreams. */
export function completeServices(
  services: readonly Service[],
  livestreams: readonly Livestream[],
): Service[] {
  return services.map((service, index) => {
    const livestream = livestreams[index]
    return livestream ? { ...service, id: livestream.id } : service
  })
}

/**
 * Decides about one event. Pure, so that a dry run gets the same decision. Checks the ownership only if the shape is
 * valid. Each check reports all its errors (design.md §7).
 */
export function decide(
  submission: Submission,
  feed: Feed | undefined,
  now: number,
  dialects: Dialects = 'all',
): Decision {
  const { payload, institutionId } = submission
  const parsed = parsePayload(payload)
  if ('errors' in parsed) return refused(parsed.errors)
  const read = readDialect(parsed.value, { dialects, feed, institutionId })
  if (read.errors.length > 0) return refused([...read.errors], read)
  const shape = checkShape(read.event, { protocol: 'mqtt', now })
  if ('errors' in shape) return refused(shape.errors, read)

  const errors = checkClass(shape.kind, submission)
  if (!feed) {
    errors.push(errorItem('feed.unavailable', '.', 'try again later'))
    return refused(errors, read)
  }
  const ownership = checkOwnership(shape.event.services, institutionId, feed)
  if ('errors' in ownership) return refused([...errors, ...ownership.errors], read)
  const { livestreams } = ownership
  const livestreamIds = [...new Set(livestreams.map(({ id }) => id))]
  const { event, kind, time, expires } = shape
  errors.push(...checkTotalSize(payload, livestreamIds.length))
  errors.push(...checkOutgoingSize(payload, event, () => completeServices(event.services, livestreams)))
  if (errors.length > 0) return refused(errors, read)
  const { warnings, creator, isCompletedFromFeed } = read
  // Names each field: fields behind a spread took as long as the check of the shape.
  return {
    outcome: 'published',
    event,
    kind,
    time,
    expires,
    livestreams,
    livestreamIds,
    warnings,
    creator,
    isCompletedFromFeed,
  }
}

function refused(errors: ErrorItem[], read?: Pick<Read, 'event' | 'creator'>): Decision {
  const blocked = errors.some((error) => outcomeOf(error.errorCode) === 'blocked')
  return { outcome: blocked ? 'blocked' : 'invalid', errors, value: read?.event, creator: read?.creator }
}

/** Checks the event's class against the topic and the credential (service.md §6.3). */
function checkClass(kind: EventKind, { topicClass, allowedClasses }: Submission): ErrorItem[] {
  const errors: ErrorItem[] = []
  const disagree = (detail: string) => {
    errors.push(errorItem('event.class', '.event', `${kind.name} is of class ${kind.class}, ${detail}`))
  }
  if (topicClass !== undefined && topicClass !== kind.class) disagree(`the topic ends in ${topicClass}`)
  if (allowedClasses.length > 0 && !allowedClasses.includes(kind.class)) {
    disagree(`the credential is limited to ${allowedClasses.join(', ')}`)
  }
  return errors
}

/**
 * Checks with the feed that every service names a livestream of `institutionId` (service.md §4.2, design.md §7).
 * Returns all errors. A single error blocks the whole event.
 */
export function checkOwnership(
  services: readonly Service[],
  institutionId: string,
  feed: Feed,
): { livestreams: Livestream[] } | { errors: ErrorItem[] } {
  const livestreams: Livestream[] = []
  const errors: ErrorItem[] = []
  for (const [index, service] of services.entries()) {
    const path = `.services.${index}`
    const resolved = resolveLivestream(service, path, institutionId, feed)
    if ('error' in resolved) {
      errors.push(resolved.error)
    } else {
      livestreams.push(resolved.livestream)
      errors.push(...checkOwner(service, resolved.livestream, institutionId, path))
    }
    if (service.institutionId !== undefined && service.institutionId !== institutionId) {
      const detail = `${service.institutionId}, expected the institution of the topic, ${institutionId}`
      errors.push(errorItem('service.institution.claim', `${path}.institutionId`, detail))
    }
  }
  return errors.length > 0 ? { errors } : { livestreams }
}

/** Finds the livestream that a service names. `externalId` and `id`, if given, must name the same one. */
function resolveLivestream(
  service: Service,
  path: string,
  institutionId: string,
  feed: Feed,
): { livestream: Livestream } | { error: ErrorItem } {
  const named = feed.byExternalId.get(service.externalId) ?? []
  if (service.id !== undefined) {
    const livestream = feed.byId.get(service.id)
    if (!livestream) return { error: errorItem('service.unknown', `${path}.id`, service.id) }
    if (named.some(({ id }) => id === livestream.id)) return { livestream }
    // Feedback must reveal nothing about livestreams of other institutions.
    const isOwn = livestream.institution.id === institutionId
    const expected = isOwn ? `, expected ${livestream.externalId}` : ''
    const detail = `${service.externalId} does not name ${service.id}${expected}`
    return { error: errorItem('service.ambiguous', `${path}.externalId`, detail) }
  }
  const [livestream, another] = named
  if (!livestream) return { error: errorItem('service.unknown', `${path}.externalId`, service.externalId) }
  if (another) {
    const detail = `${service.externalId} names ${named.length} livestreams, expected an id as well`
    return { error: errorItem('service.ambiguous', `${path}.externalId`, detail) }
  }
  return { livestream }
}

function checkOwner(
  service: Service,
  livestream: Livestream,
  institutionId: string,
  path: string,
): ErrorItem[] {
  const errors: ErrorItem[] = []
  const isOwn = livestream.institution.id === institutionId
  if (!isOwn) {
    // The text reveals neither the owner of the livestream nor its publisher.
    const detail = `${livestream.id} is not one of ${institutionId}`
    errors.push(errorItem('service.institution.mismatch', path, detail))
  }
  if (service.publisherId !== livestream.publisher.id) {
    const expected = isOwn ? `, expected ${livestream.publisher.id}` : ''
    errors.push(
      errorItem('service.publisher.mismatch', `${path}.publisherId`, `${service.publisherId}${expected}`),
    )
  }
  return errors
}
