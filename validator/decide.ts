import { type ErrorItem, errorItem, outcomeOf } from '../event/error.ts'
import { parseJson } from '../event/json.ts'
import type { EventClass, EventKind } from '../event/kind.ts'
import { type HubEvent, maxLivestreams } from '../event/schema.ts'
import { checkShape, tooManyLivestreams } from '../event/shape.ts'
import type { Change } from '../store/store.ts'
import type { Feed, Livestream } from './feed/feed.ts'
import { checkOwnership } from './ownership.ts'

/** One event to decide about by the rules of MQTT, with the rights of its publisher. */
export interface Submission {
  payload: Buffer
  /** Institution of the inbox topic: the publisher was permitted to publish for it. */
  institutionId: string
  /** Class token of the inbox topic. */
  topicClass?: EventClass | undefined
  /** Classes the credential is limited to; empty: all. */
  allowedClasses: readonly EventClass[]
}

/** Where and when an event came in. */
export interface Arrival {
  /** Wall clock, milliseconds since the epoch. */
  at: number
  /** `performance.now()` at the arrival of its last byte: the time budget starts here. */
  started: number
  /** Changes that the door adds. The store takes them together with the decision, or takes neither. */
  alongside?: readonly Change[]
}

export type Decision =
  | {
      outcome: 'published'
      event: HubEvent
      kind: EventKind
      /** Event time, milliseconds since the epoch. */
      time: number
      /** End of a control state, milliseconds since the epoch. */
      expires?: number
      /** The livestream of each service, in the order of `event.services`. */
      livestreams: Livestream[]
    }
  | {
      outcome: 'invalid' | 'blocked'
      errors: ErrorItem[]
      /** The payload as far as it could be read, for the report. */
      value: unknown
    }

/** Largest payload in bytes (service.md §8: 400 kb). */
export const maxPayloadBytes = 400 * 1024

/** Largest sum of the messages of one event, bytes: one commit stores them, and every listener gets them at once. */
const maxSpreadBytes = 8 * 1024 * 1024

/** Checks whether an event has too many livestreams, or is too large for their number: each gets the whole event. */
export function checkSpread(payload: Buffer, livestreamIds: readonly string[]): ErrorItem[] {
  const count = new Set(livestreamIds).size
  if (count > maxLivestreams) return [tooManyLivestreams(count)]
  if (payload.length * count <= maxSpreadBytes) return []
  const detail = `${payload.length} bytes for ${count} livestreams, expected at most ${maxSpreadBytes} bytes over all of them`
  return [errorItem('payload.size', '.services', detail)]
}

/**
 * Decides about one event. The function is pure, so that a dry run decides just as a real publish. It checks the shape
 * first, and the ownership only if the shape is valid. Each stage reports all its errors (design.md §7).
 */
export function decide(submission: Submission, feed: Feed | undefined, now: number): Decision {
  const { payload } = submission
  if (payload.length > maxPayloadBytes) {
    const detail = `${payload.length} bytes, expected at most ${maxPayloadBytes}`
    return refused([errorItem('payload.size', '.', detail)], undefined)
  }
  const parsed = parseJson(payload)
  if ('errors' in parsed) return refused(parsed.errors, undefined)
  const shape = checkShape(parsed.value, { door: 'mqtt', now })
  if ('errors' in shape) return refused(shape.errors, parsed.value)

  const errors = checkClass(shape.kind, submission)
  if (!feed) {
    errors.push(errorItem('feed.unavailable', '.', 'try again later'))
    return refused(errors, parsed.value)
  }
  const ownership = checkOwnership(shape.event.services, submission.institutionId, feed)
  if ('errors' in ownership) return refused([...errors, ...ownership.errors], parsed.value)
  const ids = ownership.livestreams.map(({ id }) => id)
  errors.push(...checkSpread(payload, ids))
  if (errors.length > 0) return refused(errors, parsed.value)
  return { ...shape, outcome: 'published', livestreams: ownership.livestreams }
}

function refused(errors: ErrorItem[], value: unknown): Decision {
  const blocked = errors.some((error) => outcomeOf(error.errorCode) === 'blocked')
  return { outcome: blocked ? 'blocked' : 'invalid', errors, value }
}

/** Per-class publish permissions (service.md §6.3): the topic may name a class, the credential may be limited. */
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
