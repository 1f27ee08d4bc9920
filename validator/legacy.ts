import { cut } from '../event/cut.ts'
import type { ErrorItem } from '../event/error.ts'
import type { HubEvent } from '../event/kind.ts'
import { type Warning, warningsOf } from '../event/warnings.ts'
import { ownBytes } from '../store/own-bytes.ts'
import type { Timing } from '../telemetry/latency.ts'
import type { Log } from '../telemetry/log.ts'
import type { EventOutcome, Metrics } from '../telemetry/metrics.ts'
import type { Arrival, Charge } from './decide.ts'
import type { FeedInUse, LivestreamIndex } from './feed/feed.ts'
import { answer, answerDry, describeAnswer, type LegacyResult, topicsToMake } from './legacy-answer.ts'
import { type Judgeable, judgeRequest, type LegacyRequest, type RequestRefused } from './legacy-request.ts'
import { answeredMessage, radioMessages } from './messages.ts'
import { decideWithRetries, fingerprintOf, type Repetitions } from './repetitions.ts'
import type { Settlement, Watch, WorkPlanner } from './settlement.ts'
import type { Topics } from './topics.ts'
import type { Judged } from './verdict.ts'
import { countWarnings } from './warning-counts.ts'

/** A request that the hub has decided about, but has not stored yet. */
type LegacyDecided = {
  request: LegacyRequest
  arrival: Arrival
  now: number
  /** When the request reached each of its stages. */
  timing: Timing
} & (RequestRefused | Judgeable)

interface LegacyParts {
  feed: FeedInUse
  former: LivestreamIndex
  topics: Topics
  repetitions: Repetitions
  work: Pick<WorkPlanner, 'pluginTargets'>
  watch?: Watch
  /** Stores a decision, and sends its messages. Rejects as `createStoring` does. */
  store: (settlement: Settlement) => Promise<void>
  nextEventId: () => string
  clock: () => number
  log: Log
  metrics: Metrics
}

/**
 * Returns a function that publishes an event over HTTPS by the legacy rules (design.md §9). The hub judges each service
 * by itself. If a livestream has no topic, the hub makes the topic. It does not publish this event for that livestream
 * (service.md §3).
 */
export function createLegacy(parts: LegacyParts) {
  const { topics, store, clock, log, metrics } = parts

  return <From extends Arrival>(
    request: LegacyRequest,
    arrival: From,
    charge: Charge<From>,
  ): Promise<LegacyResult> => {
    const now = clock()
    const timing = metrics.latency.begin(arrival.started)
    const verdict = judgeRequest(request, now, parts)
    timing.decided = performance.now()
    charge(arrival, verdict.livestreams)
    return settle({ request, arrival, now, timing, ...verdict })
  }

  /** Stores the decision, sends its messages, and returns the result. Never rejects. */
  async function settle(decided: LegacyDecided): Promise<LegacyResult> {
    const { request, timing } = decided
    if (decided.refused) {
      const { errors } = decided
      refused(decided.refused === 'invalid' ? 'invalid' : 'blocked', errors, request)
      if (!request.dryRun) await keepReport(decided)
      return decided.refused === 'invalid' ? { outcome: 'invalid', errors } : { outcome: 'unavailable' }
    }
    const { event, kind, judgeAgain } = decided
    let { judged } = decided
    // Another node may have made the topics a moment ago, for somebody else.
    if (judged.withoutTopic.size > 0 && (await topics.caughtUp())) judged = judgeAgain()
    if (request.dryRun) {
      metrics.events.inc({ outcome: 'dry-run' })
      return answerDry(event, judged, warningsAbout(decided, judged, topicsToMake(judged)))
    }
    const warnings = warningsAbout(decided, judged)
    let id = ''
    try {
      await decideWithRetries((isAgain) => {
        if (isAgain) judged = judgeAgain()
        const settlement = settlementOf(decided, judged, warnings, parts)
        id = settlement.id
        return store(settlement)
      })
    } catch (error) {
      metrics.storeFailures.inc()
      metrics.events.inc({ outcome: 'failed' })
      log.error({ err: error, event: kind.name }, 'event not stored')
      return { outcome: 'failed' }
    }
    note(decided, judged)
    if (judged.withTopic.length > 0) {
      countWarnings(warnings, request.institutionId, parts)
      const isLate = metrics.latency.finish(timing, id, kind.name, decided.now)
      if (isLate) log.warn({ id, event: kind.name }, 'event took longer than 220 ms')
    }
    return answer(event, judged, id, warnings)
  }

  /** None if all services are blocked: then the errors come first. */
  function warningsAbout(
    { event, kind, time, arrival }: LegacyDecided & Judgeable,
    { ids }: Judged,
    found: readonly ErrorItem[] = [],
  ): Warning[] {
    if (ids.size === 0) return []
    const { pluginTargets } = parts.work
    const rounds = parts.watch?.roundsOf({ event, kind, livestreamIds: [...ids] })
    return warningsOf(event, { kind, time, receivedAt: arrival.at, pluginTargets, rounds }, found)
  }

  /** Stores the report of a refused event. If the store fails, the publisher still gets the answer. */
  async function keepReport({
    request,
    arrival,
    timing,
    refused,
    errors,
    value,
  }: LegacyDecided & RequestRefused) {
    const outcome = refused === 'invalid' ? 'invalid' : 'blocked'
    const report = describeAnswer(request, arrival, outcome, value, { errors })
    const { institutionId, payload, eventName } = request
    try {
      await store({
        messages: [answeredMessage(institutionId, report, { payload, value })],
        topics: undefined,
        accepted: undefined,
        repetition: undefined,
        alongside: arrival.alongside,
        timing,
      })
    } catch (error) {
      metrics.storeFailures.inc()
      log.warn({ err: error, event: eventName }, 'refused event not in the history')
    }
  }

  /** Counts and logs the outcome of an event. */
  function note({ request, kind }: LegacyDecided & Judgeable, { withTopic, blocked }: Judged): void {
    const unpublished = blocked.length > 0 ? 'blocked' : 'topic-created'
    metrics.events.inc({ outcome: withTopic.length > 0 ? 'published' : unpublished })
    const [first] = blocked
    if (!first) return
    count(blocked.map(({ error }) => error))
    log.info(
      {
        outcome: 'blocked',
        event: kind.name,
        institutions: [request.institutionId],
        services: blocked.slice(0, 5).map(({ service }) => cut(service.externalId, 200)),
        error: first.error,
      },
      'event refused',
    )
  }

  /** Counts and logs an event that is refused as a whole. */
  function refused(outcome: EventOutcome, errors: readonly ErrorItem[], request: LegacyRequest): void {
    const { eventName: event, institutionId, dryRun = false } = request
    metrics.events.inc({ outcome: dryRun ? 'dry-run' : outcome })
    if (dryRun) return
    count(errors)
    log.info({ outcome, event, institutions: [institutionId], error: errors[0] }, 'event refused')
  }

  function count(errors: readonly ErrorItem[]): void {
    for (const { errorCode } of errors) metrics.eventErrors.inc({ code: errorCode })
  }
}

function settlementOf(
  { request, arrival, now, timing, event, kind, time }: LegacyDecided & Judgeable,
  judged: Judged,
  warnings: Warning[],
  { topics, repetitions, nextEventId }: Pick<LegacyParts, 'topics' | 'repetitions' | 'nextEventId'>,
) {
  const { payload: source, institutionId } = request
  const { ids, withTopic, verdicts, completed, blocked, errors, statuses, unlisted } = judged
  // If all services are blocked, the event counts as new when it comes again.
  const repetition =
    ids.size > 0 ? repetitions(fingerprintOf(kind.name, institutionId, source), nextEventId) : undefined
  const id = repetition?.id ?? nextEventId()
  // The messages name only the services for which the event is published. They must not name a blocked service.
  const services = completed.filter((_, index) => withTopic.includes(verdicts[index]?.livestreamId ?? ''))
  const stored: HubEvent = { ...event, id, services }
  const payload = ownBytes(JSON.stringify(stored))
  if (errors.length > 0) repetition?.markPublishedInPart()
  const isPublished = withTopic.length > 0
  const outcome = isPublished ? 'published' : blocked.length > 0 ? 'blocked' : 'failed'
  const of = isPublished ? { livestreams: [...withTopic] } : {}
  const refusedServices = isPublished ? completed.filter((service) => !services.includes(service)) : []
  const described = describeAnswer(request, arrival, outcome, event, { errors, warnings, id, ...of })
  const accepted = { event: stored, id, kind, time, payload, institutionId, livestreamIds: withTopic }
  return {
    id,
    messages: [
      ...radioMessages(stored, payload, { kind, time }, { institutionId, livestreamIds: withTopic, now }),
      answeredMessage(
        institutionId,
        { ...described, statuses },
        { payload: source, value: event, refusedServices },
      ),
    ],
    topics: topics.missing([...ids], now, unlisted),
    accepted: isPublished ? accepted : undefined,
    repetition,
    alongside: arrival.alongside,
    timing,
  }
}
