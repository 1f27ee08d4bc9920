import { type ErrorItem, errorItem } from '../event/error.ts'
import { parseJson } from '../event/json.ts'
import type { HubEvent } from '../event/kind.ts'
import type { Message } from '../event/message.ts'
import { warningsOf } from '../event/warnings.ts'
import type { Prepare } from '../store/commit-together.ts'
import { ownBytes } from '../store/own-bytes.ts'
import type { Timing } from '../telemetry/latency.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import {
  type Arrival,
  type Charge,
  completeServices,
  type Decision,
  decide,
  type Submission,
} from './decide.ts'
import type { Dialects } from './dialect.ts'
import type { FeedInUse, LivestreamIndex } from './feed/feed.ts'
import { createLegacy } from './legacy.ts'
import { describeOutcome, feedbackMessages, type Report, radioMessages, type Source } from './messages.ts'
import { decideWithRetries, fingerprintOf, type Repetition, type Repetitions } from './repetitions.ts'
import type { Accepted, FanOut, Settlement, Watch, WorkPlanner } from './settlement.ts'
import type { Topics } from './topics.ts'
import { countWarnings } from './warning-counts.ts'

export type Pipeline = ReturnType<typeof createPipeline>

/**
 * The one pipeline behind MQTT and HTTPS. The decision depends only on the event, the feed and the clock. `publish`,
 * `dryRun` and `refuse` decide, charge the publisher, and begin to store the decision, in this order and at once. They
 * return the report. Outcome `failed`: the event may be lost, so the caller must not acknowledge it.
 */
export function createPipeline(parts: {
  feed: FeedInUse
  /** Livestreams that dropped out of the feed. */
  former: LivestreamIndex
  topics: Topics
  repetitions: Repetitions
  fanout: FanOut
  work: WorkPlanner
  /** Absent: nobody watches. */
  watch?: Watch
  /** The payload of a message in the journal. Undefined: the journal does not have it any more. */
  payloadAt: (position: number) => Promise<Buffer | undefined>
  /** Which forms of an event are read over MQTT (`HUB_DIALECTS`). */
  dialects: Dialects
  nextEventId: () => string
  clock: () => number
  log: Log
  metrics: Metrics
}) {
  const { feed, topics, fanout, payloadAt, dialects, clock, log, metrics } = parts
  const store = createStoring(parts)

  return {
    /** The decision about an event. Changes nothing. */
    decide: decideNow,

    /** Publishes an event, or reports its errors. */
    publish<From extends Arrival>(
      submission: Submission,
      arrival: From,
      charge?: Charge<From>,
    ): Promise<Report> {
      const timing = metrics.latency.begin(arrival.started)
      const decision = decideNow(submission)
      timing.decided = performance.now()
      charge?.(arrival, decision.outcome === 'published' ? decision.livestreamIds.length : 0)
      const { institutionId, reportTo = [institutionId] } = submission
      const about = { institutions: reportTo, arrival, timing }
      return settle(about, () => settlementOf(decision, submission, about, parts))
    },

    /** Dry run over MQTT: the institution gets the report that a real publish would have. Nothing is published. */
    dryRun<From extends Arrival>(
      submission: Submission,
      arrival: From,
      charge?: Charge<From>,
    ): Promise<Report> {
      const institutions = [submission.institutionId]
      const { report, messages, source } = foresee(submission, arrival)
      const dry: Report = { ...report, dryRun: true }
      const settled = { report: dry, messages: feedbackMessages(institutions, dry, source) }
      const timing = metrics.latency.begin(arrival.started)
      charge?.(arrival, messages.length)
      return settle({ institutions, arrival, timing }, () => settled)
    },

    /** Handles a PUBLISH that the broker has refused because of its topic or the ACL: `institutions` get a report. */
    refuse<From extends Arrival>(
      refusal: {
        payload: Buffer
        error: ErrorItem
        outcome: 'invalid' | 'blocked'
        institutions: readonly string[]
      },
      arrival: From,
      charge?: Charge<From>,
    ): Promise<Report> {
      const { payload, outcome, error, institutions } = refusal
      const value = readLoosely(payload)
      const report = describeOutcome(outcome, value, { errors: [error], arrival, payload })
      const settled = { report, messages: feedbackMessages(institutions, report, { payload, value }) }
      const timing = metrics.latency.begin(arrival.started)
      charge?.(arrival, 0)
      return settle({ institutions, arrival, timing }, () => settled)
    },

    /** The same as `publish` for an event over HTTPS, by the legacy rules. */
    publishLegacy: createLegacy({ ...parts, store }),

    /** Dry run for operators: the report of a real publish, and the topics of its messages. Changes nothing. */
    check(submission: Submission): Report & { topics: string[] } {
      const { report, messages } = foresee(submission, { at: clock(), started: 0, clientId: null })
      return { ...report, topics: messages.map((message) => message.topic) }
    },
  }

  function decideNow(submission: Submission): Decision {
    return decide(submission, feed.inUse?.feed, clock(), dialects)
  }

  /** The report and the messages that a real publish would have. */
  function foresee(submission: Submission, arrival: Arrival): Omit<Completed, 'accepted'> {
    const decision = decideNow(submission)
    const { report, messages, source } = complete(parts, decision, submission, arrival, '')
    return { report: { ...report, id: null }, messages, source }
  }

  /** Stores the decision that `make` has made, sends its messages, and returns the report. Never rejects. */
  async function settle(decided: Decided, make: () => Settled): Promise<Report> {
    const { institutions, arrival, timing } = decided
    let settled = make()
    try {
      await decideWithRetries((isAgain) => {
        if (isAgain) settled = make()
        return settled.repetition?.first ? storeAgain(settled.repetition.first) : storeNow()
      })
    } catch (error) {
      metrics.storeFailures.inc()
      metrics.events.inc({ outcome: 'failed' })
      log.error({ err: error, event: settled.report.event }, 'event not stored and not acknowledged')
      const errors = [errorItem('service.failed', '.', 'not stored, send it again')]
      const failed = describeFailure(settled.report, errors)
      fanout.announce(feedbackMessages(institutions, failed))
      return failed
    }
    note(settled.report, decided, parts)
    return settled.report

    async function storeAgain(first: NonNullable<Repetition['first']>): Promise<void> {
      settled = asStored(settled, 'payload' in first ? first.payload : await payloadAt(first.position))
      await storeNow()
    }

    function storeNow(): Promise<void> {
      const { accepted, messages, repetition } = settled
      const haveTopics = accepted?.livestreamIds.every((id) => topics.stored.has(id)) ?? true
      const missing = haveTopics ? undefined : topics.missing(accepted?.livestreamIds ?? [], arrival.at)
      return store({ messages, topics: missing, accepted, repetition, alongside: arrival.alongside, timing })
    }
  }
}

/** An event that is decided, and not stored yet. */
interface Decided {
  /** The institutions that get the report. */
  institutions: readonly string[]
  arrival: Arrival
  /** When the event reached each of its stages. */
  timing: Timing
}

/** The report and the messages of a decision. */
interface Completed {
  report: Report
  source: Source
  /** The messages for the radio tree. */
  messages: Message[]
  accepted?: Accepted
}

/** The report of an event, and the messages that go out for it. */
interface Settled {
  report: Report
  messages: readonly Message[]
  accepted?: Accepted | undefined
  repetition?: Repetition | undefined
}

/** Makes the messages for an event. A repeated event keeps its id. */
function settlementOf(
  decision: Decision,
  submission: Submission,
  { institutions, arrival }: Decided,
  parts: Watching & { repetitions: Repetitions; nextEventId: () => string },
): Settled {
  const { institutionId, payload } = submission
  const repetition =
    decision.outcome === 'published'
      ? parts.repetitions(fingerprintOf(decision.kind.name, institutionId, payload), parts.nextEventId)
      : undefined
  const completed = complete(parts, decision, submission, arrival, repetition?.id ?? '')
  const feedback = feedbackMessages(institutions, completed.report, completed.source)
  const { report, accepted, messages } = completed
  if (accepted && decision.outcome === 'published' && decision.isCompletedFromFeed)
    repetition?.keepAsStored(accepted.payload)
  return { report, accepted, messages: messages.concat(feedback), repetition }
}

/**
 * Sends a repetition as the first was stored, if that was for the same livestreams. `payload`: that of the first.
 * Undefined: the journal does not have it any more.
 */
function asStored(settled: Settled, payload: Buffer | undefined): Settled {
  const { accepted, messages } = settled
  if (!accepted || !payload) return settled
  const event: HubEvent = JSON.parse(payload.toString())
  const named = new Set(event.services.map(({ id }) => id))
  const { livestreamIds } = accepted
  if (event.id !== accepted.id || named.size !== livestreamIds.length) return settled
  if (!livestreamIds.every((id) => named.has(id))) return settled
  return {
    ...settled,
    accepted: { ...accepted, event, payload },
    messages: messages.map((message) =>
      message.payload === accepted.payload ? { ...message, payload } : message,
    ),
  }
}

/** What warnings come from, beside the event. */
interface Watching {
  work: Pick<WorkPlanner, 'pluginTargets'>
  watch?: Watch
}

/** Makes the report and the messages for the radio tree from a decision. */
function complete(
  { work, watch }: Watching,
  decision: Decision,
  { institutionId, payload: received }: Submission,
  arrival: Arrival,
  id: string,
): Completed {
  if (decision.outcome !== 'published') {
    const { outcome, errors, value, creator } = decision
    const report = describeOutcome(outcome, value, { errors, arrival, payload: received })
    return { report, messages: [], source: { payload: received, value, creator } }
  }
  const event = {
    ...decision.event,
    id,
    services: completeServices(decision.event.services, decision.livestreams),
  }
  const payload = ownBytes(JSON.stringify(event))
  const { kind, time, livestreamIds } = decision
  const rounds = watch?.roundsOf({ event, kind, livestreamIds })
  const circumstances = { kind, time, receivedAt: arrival.at, pluginTargets: work.pluginTargets, rounds }
  const warnings = warningsOf(event, circumstances, decision.warnings)
  return {
    report: describeOutcome('published', event, {
      id,
      livestreams: livestreamIds,
      warnings,
      arrival,
      payload: received,
    }),
    messages: radioMessages(event, payload, decision, { institutionId, livestreamIds, now: arrival.at }),
    source: { payload: received, value: event, creator: decision.creator },
    accepted: { event, id, kind, time, payload, institutionId, livestreamIds },
  }
}

/** Counts and logs the outcome of an event. */
function note(
  report: Report,
  { institutions, arrival, timing }: Decided,
  { feed, log, metrics }: { feed: FeedInUse; log: Log; metrics: Metrics },
): void {
  metrics.events.inc({ outcome: report.dryRun ? 'dry-run' : report.outcome })
  if (report.dryRun) return
  for (const { errorCode } of report.errors) metrics.eventErrors.inc({ code: errorCode })
  if (report.outcome === 'published') {
    const { id, event, warnings = [] } = report
    for (const institution of institutions) countWarnings(warnings, institution, { feed, metrics })
    const isLate = metrics.latency.finish(timing, id ?? '', event ?? '', arrival.at)
    if (isLate) log.warn({ id, event }, 'event took longer than 220 ms')
  } else if (institutions.length > 0) {
    const { outcome, event, services, errors } = report
    log.info(
      { outcome, event, institutions, services: services.slice(0, 5), error: errors[0] },
      'event refused',
    )
  }
}

function describeFailure(report: Report, errors: ErrorItem[]): Report {
  const statuses = { published: 0, blocked: 0, failed: report.services.length }
  const { warnings: _ofAPublishedEvent, ...said } = report
  return { ...said, outcome: 'failed', statuses, id: null, errors }
}

/** Reads the payload of a refused PUBLISH. Undefined: it is not acceptable JSON. */
function readLoosely(payload: Buffer): unknown {
  const parsed = parseJson(payload)
  return 'value' in parsed ? parsed.value : undefined
}

/**
 * Returns a function that carries out a decision. One commit stores the messages and all other changes of the decision.
 * Some messages may go out while the commit is still under way. The function resolves when all messages are sent, and
 * rejects as `FanOut.distribute` does.
 */
export function createStoring({
  fanout,
  work,
  watch,
}: {
  fanout: Pick<FanOut, 'distribute'>
  work: WorkPlanner
  watch?: Watch
}) {
  return ({ messages, topics, accepted, repetition, alongside = [], timing }: Settlement): Promise<void> => {
    const planned: Prepare = () => {
      const isPlanned = accepted && repetition && mayCauseWork(accepted, work)
      return {
        changes: isPlanned ? work.plan(accepted, repetition).concat(alongside) : alongside,
        end(how) {
          if (how === 'failed') return
          timing.stored = performance.now()
          timing.position = how
          if (accepted) watch?.published(accepted, repetition?.isRepeated ?? false)
        },
      }
    }
    const others = [planned]
    if (topics) others.push(topics)
    if (repetition) others.push(repetition.marks)
    return fanout.distribute(repetition?.isRepeated ? messages.map(asRepetition) : messages, others)
  }
}

/** Whether an event may go to webhooks or plugin targets. */
function mayCauseWork({ event, livestreamIds }: Accepted, { withWebhooks, isForAll }: WorkPlanner): boolean {
  return isForAll || 'plugins' in event || livestreamIds.some((id) => withWebhooks.has(id))
}

function asRepetition(message: Message): Message {
  return message.isReport ? message : { ...message, isRepetition: true }
}
