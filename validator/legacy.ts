import { type ErrorItem, errorItem } from '../event/error.ts'
import { parseJson } from '../event/json.ts'
import type { HubEvent, Service } from '../event/schema.ts'
import { checkShape } from '../event/shape.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Way } from '../telemetry/stages.ts'
import { type Arrival, checkSpread, maxPayloadBytes } from './decide.ts'
import type { Feed, Livestreams } from './feed/feed.ts'
import { radioMessages } from './messages.ts'
import { decideAgain, fingerprintOf, type Repetitions } from './repetitions.ts'
import { answeredMessage, describeOutcome, type Report } from './report.ts'
import type { createStoring } from './storing.ts'
import type { Topics } from './topics.ts'
import {
  blockedOf,
  checkNames,
  isBlocked,
  type Judged,
  judge,
  livestreamOf,
  type Ownership,
  unlistedOf,
  type Verdict,
  verdictOf,
} from './verdict.ts'

/** What became of an event over HTTPS (service.md §2.7, §4.1). */
type LegacyResult =
  | {
      outcome: 'accepted'
      /** Numbers of services. */
      statuses: { published: number; blocked: number; failed: number }
      /** Why services were blocked, or got a topic instead of the event. */
      errors: ErrorItem[]
      /** As stored: with its id, services completed with id and topic. Nothing has an id in a dry run. */
      event: Record<string, unknown>
    }
  | { outcome: 'invalid'; errors: ErrorItem[] }
  | { outcome: 'failed' }
  /** There is no feed. */
  | { outcome: 'unavailable' }

interface Request {
  payload: Buffer
  eventName: string
  institutionId: string
  /** Decides, and does nothing else. */
  dryRun?: boolean
}

/** A request that is judged, and not yet stored. */
export type LegacyDecided = {
  request: Request
  arrival: Arrival
  now: number
  /** The times of its stages so far. */
  way: Way
} & (Refused | Taken)

/** An event that goes somewhere, or gets a topic there. */
interface Taken extends Readable {
  refused?: undefined
  /** To how many livestreams it goes. */
  livestreams: number
  by: Ownership
  judged: Judged
}

/** An event that is refused as a whole. */
interface Refused {
  refused: 'invalid' | 'unavailable'
  errors: ErrorItem[]
  /** What could be read of the payload. */
  value: unknown
  /** To how many livestreams it would have gone. */
  livestreams: number
}

/**
 * The legacy rules of publishing (design.md §9): each service has its own verdict, external publisher ids
 * are converted, and a livestream without topic gets one instead of the event (service.md §3).
 */
export function createLegacy(parts: {
  feed: () => Feed | undefined
  former: Livestreams
  topics: Topics
  repetitions: Repetitions
  store: ReturnType<typeof createStoring>
  nextEventId: () => string
  clock: () => number
  log: Log
  metrics: Metrics
}) {
  const { feed, former, topics, repetitions, store, nextEventId, clock, log, metrics } = parts

  return {
    decide(request: Request, arrival: Arrival): LegacyDecided {
      const now = clock()
      const way = metrics.stages.begin(arrival.started)
      const verdict = verdictOn(request, now)
      way.decided = performance.now()
      return { request, arrival, now, way, ...verdict }
    },

    /** Stores what was decided, hands it to everyone connected, and says what the publisher gets to know. Never rejects. */
    async settle(decided: LegacyDecided): Promise<LegacyResult> {
      const { request, way } = decided
      if (decided.refused) {
        const { errors } = decided
        refused(decided.refused === 'invalid' ? 'invalid' : 'blocked', errors, request.dryRun)
        if (!request.dryRun) await keepReport(decided)
        return decided.refused === 'invalid' ? { outcome: 'invalid', errors } : { outcome: 'unavailable' }
      }
      const { event, kind } = decided
      let { judged } = decided
      if (request.dryRun) {
        metrics.events.inc({ outcome: 'dry-run' })
        return answer(event, judged, null)
      }
      let id = ''
      try {
        await decideAgain((isAgain) => {
          if (isAgain) judged = judge(event.services, request.institutionId, decided.by, topics)
          const settlement = settlementOf(decided, judged)
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
      if (judged.published.length > 0) {
        const took = metrics.stages.finish(way, { id, event: kind.name, at: decided.now })
        metrics.recordBudget(took)
      }
      return answer(event, judged, id)
    },
  }

  /** The event and where it goes, or why it is refused as a whole. */
  function verdictOn({ payload, eventName, institutionId }: Request, now: number): Refused | Taken {
    const shape = readEvent(payload, eventName, now)
    const livestreams = 0
    if ('errors' in shape) return { refused: 'invalid', ...shape, livestreams }
    const { event } = shape
    const current = feed()
    if (!current) {
      const errors = [errorItem('feed.unavailable', '.')]
      return { refused: 'unavailable', errors, value: event, livestreams }
    }
    const by: Ownership = { feed: current, former, ownerOf: topics.ownerOf }
    const misnamed = checkNames(event.services, by)
    if (misnamed.length > 0) return { refused: 'invalid', errors: misnamed, value: event, livestreams }
    const judged = judge(event.services, institutionId, by, topics)
    const tooMuch = checkSpread(payload, [...judged.ids])
    const { size } = judged.ids
    if (tooMuch.length > 0) return { refused: 'invalid', errors: tooMuch, value: event, livestreams: size }
    return { ...shape, livestreams: size, by, judged }
  }

  /** What goes out for an event, and its id. */
  function settlementOf(
    { request, arrival, now, way, event, kind, time }: LegacyDecided & Taken,
    judged: Judged,
  ) {
    const { payload: source, institutionId } = request
    const { ids, published, verdicts, completed } = judged
    // Nothing of an event is remembered that was blocked.
    const repetition =
      ids.size > 0 ? repetitions(fingerprintOf(kind.name, institutionId, source), nextEventId) : undefined
    const id = repetition?.id ?? nextEventId()
    // Only what was accepted goes out: a blocked service has no place on the air of others.
    const services = completed.filter((_, index) => published.includes(livestreamOf(verdicts[index]) ?? ''))
    const stored: HubEvent = { ...event, id, services }
    const payload = Buffer.from(JSON.stringify(stored))
    const { statuses, errors } = verdictOf(event, judged)
    if (errors.length > 0) repetition?.inPart()
    const isPublished = published.length > 0
    const isBlockedInPart = errors.some(({ errorCode }) => errorCode !== 'topic.created')
    const outcome = isPublished ? 'published' : isBlockedInPart ? 'blocked' : 'failed'
    const of = isPublished ? { livestreams: [...published] } : {}
    const refusedServices = isPublished ? completed.filter((service) => !services.includes(service)) : []
    const described = describe(request, arrival, outcome, event, { errors, id, ...of })
    const accepted = { event: stored, id, kind, payload, institutionId, livestreamIds: published }
    return {
      id,
      messages: [
        ...radioMessages(stored, payload, { kind, time, institutionId, livestreamIds: published, now }),
        answeredMessage(
          institutionId,
          { ...described, statuses },
          { payload: source, value: event, refusedServices },
        ),
      ],
      topics: topics.missing([...ids], now, unlistedOf(event.services, verdicts, institutionId)),
      accepted: isPublished ? accepted : undefined,
      repetition,
      alongside: arrival.alongside,
      way,
    }
  }

  /** The answer is true without it: the publisher gets it in any case. */
  async function keepReport({ request, arrival, way, refused, errors, value }: LegacyDecided & Refused) {
    const outcome = refused === 'invalid' ? 'invalid' : 'blocked'
    const report = describe(request, arrival, outcome, value, { errors })
    const { institutionId, payload, eventName } = request
    try {
      await store({
        messages: [answeredMessage(institutionId, report, { payload, value })],
        topics: { created: [], changes: [] },
        accepted: undefined,
        repetition: undefined,
        alongside: arrival.alongside,
        way,
      })
    } catch (error) {
      metrics.storeFailures.inc()
      log.warn({ err: error, event: eventName }, 'refused event not in the history')
    }
  }

  /** Counts and logs what became of an event. */
  function note({ request, event, kind }: LegacyDecided & Taken, judged: Judged): void {
    const { published, verdicts } = judged
    const blocked = blockedOf(verdicts)
    const unpublished = blocked.length > 0 ? 'blocked' : 'topic-created'
    metrics.events.inc({ outcome: published.length > 0 ? 'published' : unpublished })
    count(blocked)
    if (blocked.length === 0) return
    const refused = event.services.filter((_, index) => isBlocked(verdicts[index]))
    log.info(
      {
        ...{ outcome: 'blocked', event: kind.name, institutions: [request.institutionId] },
        services: refused.slice(0, 5).map(({ externalId }) => externalId.slice(0, 200)),
        error: blocked[0],
      },
      'event refused',
    )
  }

  function refused(outcome: string, errors: readonly ErrorItem[], dryRun = false): void {
    metrics.events.inc({ outcome: dryRun ? 'dry-run' : outcome })
    if (!dryRun) count(errors)
  }

  function count(errors: readonly ErrorItem[]): void {
    for (const { errorCode } of errors) metrics.eventErrors.inc({ code: errorCode })
  }
}

/** What is kept of the answer. */
function describe(
  { payload, eventName }: Request,
  { at: receivedAt }: Arrival,
  outcome: Report['outcome'],
  value: unknown,
  details: Omit<Parameters<typeof describeOutcome>[2], 'receivedAt' | 'payload'>,
): Report {
  return { ...describeOutcome(outcome, value, { ...details, receivedAt, payload }), event: eventName }
}

type Readable = Exclude<ReturnType<typeof checkShape>, { errors: ErrorItem[] }>

/** The event, or what is wrong with it and `value`, as far as it could be read. */
function readEvent(
  payload: Buffer,
  urlEventName: string,
  now: number,
): Readable | { errors: ErrorItem[]; value: unknown } {
  if (payload.length > maxPayloadBytes) {
    const detail = `${payload.length} bytes, expected at most ${maxPayloadBytes}`
    return { errors: [errorItem('payload.size', '.', detail)], value: undefined }
  }
  const parsed = parseJson(payload)
  if ('errors' in parsed) return { ...parsed, value: undefined }
  const shape = checkShape(parsed.value, { door: 'https', now, urlEventName })
  return 'errors' in shape ? { ...shape, value: parsed.value } : shape
}

/** The answer to the publisher. In a dry run nothing has an `id`. */
function answer(event: HubEvent, judged: Judged, id: string | null): LegacyResult {
  const { verdicts, completed } = judged
  return {
    outcome: 'accepted',
    ...verdictOf(event, judged),
    event: {
      ...event,
      id,
      services: completed.map((service, index) => withTopic(service, verdicts[index], judged, id)),
    },
  }
}

/** The `topic` of a service in the answer; its names are the bridge's (service.md §2.3). */
function withTopic(
  service: Service,
  verdict: Verdict | undefined,
  { published, fresh }: Judged,
  messageId: string | null,
): Service & { topic?: { id: string; status: string; messageId: string | null } } {
  const id = livestreamOf(verdict)
  if (id !== undefined && fresh.has(id)) {
    return { ...service, topic: { id, status: 'TOPIC_CREATED', messageId: null } }
  }
  if (id !== undefined && published.includes(id)) {
    return { ...service, topic: { id, status: 'MESSAGE_SENT', messageId } }
  }
  return service
}
