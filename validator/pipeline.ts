import { type ErrorItem, errorItem } from '../event/error.ts'
import { parseJson } from '../event/json.ts'
import type { Message } from '../event/message.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Way } from '../telemetry/stages.ts'
import type { Arrival, Distribute } from './arrival.ts'
import { type Decision, decide, type Submission } from './decide.ts'
import type { Feed, Livestreams } from './feed/feed.ts'
import { createLegacySubmit } from './legacy.ts'
import { radioMessages } from './messages.ts'
import { fingerprintOf, type Repetition, type Repetitions } from './repetitions.ts'
import { describeOutcome, feedbackMessages, type Report, type Source } from './report.ts'
import { createStoring } from './storing.ts'
import type { Topics } from './topics.ts'
import type { Accepted, WorkPlanner } from './work.ts'

export type Pipeline = ReturnType<typeof createPipeline>

/** The one pipeline behind every door: decide → complete → distribute → report. */
export function createPipeline(parts: {
  feed: () => Feed | undefined
  /** Livestreams that dropped out of the feed. */
  former: Livestreams
  topics: Topics
  repetitions: Repetitions
  distribute: Distribute
  work: WorkPlanner
  /** Delivers without storing: for the report that the store failed. */
  announce: (messages: readonly Message[]) => void
  nextEventId: () => string
  clock: () => number
  log: Log
  metrics: Metrics
}) {
  const { feed, topics, repetitions, work, announce, nextEventId, clock, log, metrics } = parts
  const store = createStoring(parts)

  return {
    /**
     * Takes one event the whole way. The report's outcome `failed` means nothing was stored: the door
     * must not acknowledge. Never rejects.
     */
    async submit(submission: Submission, arrival: Arrival): Promise<Report> {
      const { institutionId } = submission
      const way = metrics.stages.begin(arrival.started)
      const decision = decide(submission, feed(), clock())
      way.decided = performance.now()
      const settlement = (): Settled => {
        const repetition =
          decision.outcome === 'published'
            ? repetitions(fingerprintOf(decision.kind.name, institutionId, submission.payload), nextEventId)
            : undefined
        const completed = complete(work, decision, submission, arrival, repetition?.id ?? '')
        const feedback = feedbackMessages([institutionId], completed.report, completed.source)
        const messages = [...completed.messages, ...feedback]
        return { ...completed, messages, repetition }
      }
      arrival.decided?.(decision.outcome === 'published' ? livestreamsOf(decision).length : 0)
      return settle(settlement, [institutionId], arrival, way)
    },

    /** Dry run of a door: reports to the institution what `submit` would, and does nothing else. */
    async tryOut(submission: Submission, arrival: Arrival): Promise<Report> {
      const { institutionId } = submission
      const { report, messages, source } = foresee(submission, arrival)
      arrival.decided?.(messages.length)
      const dry: Report = { ...report, dryRun: true }
      const feedback = feedbackMessages([institutionId], dry, source)
      return settle(() => ({ report: dry, messages: feedback }), [institutionId], arrival)
    },

    /**
     * Reports a publish that the door itself refused (topic, ACL) to the publisher's own institutions.
     * The payload is only read for the report.
     */
    async refuse(
      refusal: {
        payload: Buffer
        error: ErrorItem
        outcome: 'invalid' | 'blocked'
        institutions: readonly string[]
      },
      arrival: Arrival,
    ): Promise<Report> {
      const { payload, outcome, error, institutions } = refusal
      const value = readLoosely(payload)
      arrival.decided?.(0)
      const report = describeOutcome(outcome, value, {
        ...{ errors: [error], receivedAt: arrival.at, payload },
      })
      const messages = feedbackMessages(institutions, report, { payload, value })
      return settle(() => ({ report, messages }), institutions, arrival)
    },

    /** Takes one event of the HTTPS door the whole way, by the legacy rules. Never rejects. */
    submitLegacy: createLegacySubmit({ ...parts, store }),

    /** Dry run: the report `submit` would make and the topics it would publish to; changes nothing. */
    check(submission: Submission): Report & { topics: string[] } {
      const { report, messages } = foresee(submission, { at: clock(), started: 0 })
      return { ...report, topics: messages.map((message) => message.topic) }
    },
  }

  /** What `submit` would report and publish. */
  function foresee(submission: Submission, arrival: Arrival): Omit<Completed, 'accepted'> {
    const decision = decide(submission, feed(), clock())
    const { report, messages, source } = complete(work, decision, submission, arrival, '')
    return { report: { ...report, id: null }, messages, source }
  }

  async function settle(
    settlement: () => Settled,
    institutions: readonly string[],
    arrival: Arrival,
    way: Way = metrics.stages.begin(arrival.started),
  ): Promise<Report> {
    const { alongside } = arrival
    let settled = settlement()
    try {
      await store((isAgain) => {
        if (isAgain) settled = settlement()
        const { accepted, messages, repetition } = settled
        const missing = topics.missing(accepted?.livestreamIds ?? [], arrival.at)
        return { messages, topics: missing, accepted, repetition, alongside, way }
      })
    } catch (error) {
      metrics.storeFailures.inc()
      metrics.events.inc({ outcome: 'failed' })
      log.error({ err: error, event: settled.report.event }, 'event not stored and not acknowledged')
      const errors = [errorItem('service.failed', '.', 'not stored, send it again')]
      const failed = describeFailure(settled.report, errors)
      announce(feedbackMessages(institutions, failed))
      return failed
    }
    tell(settled.report, institutions, arrival, way, parts)
    return settled.report
  }
}

/** A decision as what is told of it. */
interface Completed {
  report: Report
  source: Source
  /** For the radio tree. */
  messages: Message[]
  accepted?: Accepted
}

/** What is decided about an event, and goes out with it. */
interface Settled {
  report: Report
  messages: readonly Message[]
  accepted?: Accepted
  repetition?: Repetition | undefined
}

/** The decision as its report and the messages for the radio tree. */
function complete(
  work: WorkPlanner,
  decision: Decision,
  { institutionId, payload: received }: Submission,
  arrival: Arrival,
  id: string,
): Completed {
  const details = { receivedAt: arrival.at, payload: received }
  if (decision.outcome !== 'published') {
    const { outcome, errors, value } = decision
    const report = describeOutcome(outcome, value, { ...details, errors })
    return { report, messages: [], source: { payload: received, value } }
  }
  const event = {
    ...decision.event,
    id,
    services: decision.event.services.map((service, index) => {
      const livestream = decision.livestreams[index]
      return livestream ? { ...service, id: livestream.id } : service
    }),
  }
  const livestreamIds = livestreamsOf(decision)
  const payload = Buffer.from(JSON.stringify(event))
  const warnings = work.warnings(event)
  return {
    report: describeOutcome('published', event, { ...details, id, livestreams: livestreamIds, warnings }),
    messages: radioMessages(event, payload, {
      ...{ ...decision, institutionId, livestreamIds, now: arrival.at },
    }),
    source: { payload: received, value: event },
    accepted: { event, id, kind: decision.kind, payload, institutionId, livestreamIds },
  }
}

/** Counts what became of an event, and tells operators. */
function tell(
  report: Report,
  institutions: readonly string[],
  arrival: Arrival,
  way: Way,
  { log, metrics }: { log: Log; metrics: Metrics },
): void {
  metrics.events.inc({ outcome: report.dryRun ? 'dry-run' : report.outcome })
  if (report.dryRun) return
  for (const { errorCode } of report.errors) metrics.eventErrors.inc({ code: errorCode })
  if (report.outcome === 'published') {
    const { id, event } = report
    const took = metrics.stages.finish(way, { id: id ?? '', event: event ?? '', at: arrival.at })
    const isLate = metrics.recordBudget(took)
    if (isLate) log.warn({ id, event }, 'event took longer than 220 ms')
  } else if (institutions.length > 0) {
    const { outcome, event, services, errors } = report
    log.info(
      { outcome, event, institutions, services: services.slice(0, 5), error: errors[0] },
      'event refused',
    )
  }
}

/** The livestreams of an accepted event, each once. */
function livestreamsOf({ livestreams }: Extract<Decision, { outcome: 'published' }>): string[] {
  return [...new Set(livestreams.map(({ id }) => id))]
}

function describeFailure(report: Report, errors: ErrorItem[]): Report {
  const statuses = { published: 0, blocked: 0, failed: report.services.length }
  const { warnings: _ofAPublishedEvent, ...said } = report
  return { ...said, outcome: 'failed', statuses, id: null, errors }
}

/** Bounded like an event that is let in: a publisher of foreign topics must not cost more than others. */
function readLoosely(payload: Buffer): unknown {
  const parsed = parseJson(payload)
  return 'value' in parsed ? parsed.value : undefined
}
