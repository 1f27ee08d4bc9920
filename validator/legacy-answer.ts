import type { ErrorItem } from '../event/error.ts'
import type { HubEvent } from '../event/kind.ts'
import type { Service } from '../event/schema.ts'
import type { Arrival } from './decide.ts'
import type { LegacyRequest } from './legacy-request.ts'
import { describeOutcome, type Report } from './messages.ts'
import type { Judged, Verdict } from './verdict.ts'

/** The outcome of an event over HTTPS (service.md §2.7, §4.1). */
export type LegacyResult =
  | {
      outcome: 'accepted'
      /** Numbers of services by outcome. */
      statuses: { published: number; blocked: number; failed: number }
      /** Why the event was not published for some services. */
      errors: ErrorItem[]
      /** What is probably wrong with the event; in a dry run also services without a topic (`topicsToMake`). */
      warnings: ErrorItem[]
      /** The event with the fields that the hub added. In a dry run, its `id` is null. */
      event: Record<string, unknown>
    }
  | { outcome: 'invalid'; errors: ErrorItem[] }
  | { outcome: 'failed' }
  /** The hub has no livestream feed, so it cannot decide. */
  | { outcome: 'unavailable' }

/** The answer to the publisher. `id`: the id of the event. */
export function answer(event: HubEvent, judged: Judged, id: string, warnings: ErrorItem[]): LegacyResult {
  const { statuses, errors } = judged
  return { outcome: 'accepted', statuses, errors, warnings, event: shown(event, judged, id) }
}

/**
 * The answer to a dry run. A livestream without a topic counts as it would when the event is repeated, because the first
 * real event only makes the topic.
 */
export function answerDry(event: HubEvent, judged: Judged, warnings: ErrorItem[]): LegacyResult {
  const { published, blocked, failed } = judged.statuses
  return {
    outcome: 'accepted',
    statuses: { published: published + failed, blocked, failed: 0 },
    errors: judged.blocked.map(({ error }) => error),
    warnings,
    event: shown(event, judged, null),
  }
}

/** For the answer to a dry run: the services for which a real event would make the topic first. */
export function topicsToMake({ verdicts, withoutTopic }: Judged): ErrorItem[] {
  return verdicts.flatMap(({ livestreamId = '' }, index) =>
    withoutTopic.has(livestreamId) ? [{ ...topicWouldBeMade, path: `.services.${index}` }] : [],
  )
}

const topicWouldBeMade = {
  message:
    'The livestream has no topic: a first real event would make it, and goes out when it is sent again',
  errorCode: 'topic.created',
}

/** The event as the answer shows it. */
function shown(event: HubEvent, judged: Judged, id: string | null): Record<string, unknown> {
  const { verdicts, completed } = judged
  return {
    ...event,
    id,
    services: completed.map((service, index) => withTopic(service, verdicts[index], judged, id)),
  }
}

/** Adds the field `topic` to a service in the answer (service.md §2.3). The HTTPS bridge adds `topic.name`. */
function withTopic(
  service: Service,
  verdict: Verdict | undefined,
  { withTopic, withoutTopic }: Judged,
  messageId: string | null,
): Service & { topic?: { id: string; status: string; messageId: string | null } } {
  const id = verdict?.livestreamId
  if (id !== undefined && withoutTopic.has(id)) {
    return { ...service, topic: { id, status: 'TOPIC_CREATED', messageId: null } }
  }
  if (id !== undefined && withTopic.includes(id)) {
    return { ...service, topic: { id, status: 'MESSAGE_SENT', messageId } }
  }
  return service
}

/** Makes the report for the history, with the content of the answer. */
export function describeAnswer(
  { payload, eventName }: LegacyRequest,
  arrival: Arrival,
  outcome: Report['outcome'],
  value: unknown,
  details: Omit<Parameters<typeof describeOutcome>[2], 'arrival' | 'payload'>,
): Report {
  return { ...describeOutcome(outcome, value, { ...details, arrival, payload }), event: eventName }
}
