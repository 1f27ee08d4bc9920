import { type ErrorItem, errorItem } from '../event/error.ts'
import { parseJson } from '../event/json.ts'
import type { HubEvent, Service } from '../event/schema.ts'
import { checkShape } from '../event/shape.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Arrival } from './arrival.ts'
import { checkSpread, maxPayloadBytes } from './decide.ts'
import type { Feed, Livestreams } from './feed/feed.ts'
import { radioMessages } from './messages.ts'
import { fingerprintOf, type Repetitions } from './repetitions.ts'
import { answeredMessage, describeOutcome, eachOnce, type Report } from './report.ts'
import type { createStoring } from './storing.ts'
import type { Topics, Unlisted } from './topics.ts'
import { checkNames, judgeService, type Ownership, type Verdict } from './verdict.ts'

/**
 * Topics of one institution for livestreams that the feed does not know: far more than anybody tries out, and a
 * publisher that makes up a new name for each event must not fill the hub.
 */
const maxUnlisted = 2_000

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

/**
 * The legacy rules of publishing (design.md §9): each service has its own verdict, external publisher ids
 * are converted, and a livestream without topic gets one instead of the event (service.md §3).
 */
export function createLegacySubmit(parts: {
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

  return async (
    { payload: source, eventName, institutionId, dryRun = false }: Request,
    arrival: Arrival,
  ): Promise<LegacyResult> => {
    const now = clock()
    const way = metrics.stages.begin(arrival.started)
    const shape = readEvent(source, eventName, now)
    const current = feed()
    const refuse = async (outcome: 'invalid' | 'blocked', errors: ErrorItem[], value: unknown) => {
      refused(outcome, errors, dryRun)
      if (!dryRun) await keepReport(describe({ outcome, value, errors }), value)
    }
    if ('errors' in shape || !current) {
      arrival.decided?.(0)
      if ('errors' in shape) {
        await refuse('invalid', shape.errors, shape.value)
        return { outcome: 'invalid', errors: shape.errors }
      }
      await refuse('blocked', [errorItem('feed.unavailable', '.')], shape.event)
      return { outcome: 'unavailable' }
    }
    const { event, kind, time } = shape
    const by: Ownership = { feed: current, former, ownerOf: topics.ownerOf }
    const misnamed = checkNames(event.services, by)
    if (misnamed.length > 0) {
      arrival.decided?.(0)
      await refuse('invalid', misnamed, event)
      return { outcome: 'invalid', errors: misnamed }
    }
    let judged = judge(event.services, institutionId, by)
    arrival.decided?.(judged.ids.size)
    const tooMuch = checkSpread(source, [...judged.ids])
    if (tooMuch.length > 0) {
      await refuse('invalid', tooMuch, event)
      return { outcome: 'invalid', errors: tooMuch }
    }
    way.decided = performance.now()
    if (dryRun) {
      metrics.events.inc({ outcome: 'dry-run' })
      return answer(event, judged, null)
    }
    let id = ''
    try {
      await store((isAgain) => {
        if (isAgain) judged = judge(event.services, institutionId, by)
        const { ids, published, verdicts, completed } = judged
        // Nothing of an event is remembered that was blocked.
        const repetition =
          ids.size > 0 ? repetitions(fingerprintOf(kind.name, institutionId, source), nextEventId) : undefined
        id = repetition?.id ?? nextEventId()
        // Only what was accepted goes out: a blocked service has no place on the air of others.
        const services = completed.filter((_, index) =>
          published.includes(livestreamOf(verdicts[index]) ?? ''),
        )
        const stored: HubEvent = { ...event, id, services }
        const payload = Buffer.from(JSON.stringify(stored))
        const accepted = { event: stored, id, kind, payload, institutionId, livestreamIds: published }
        const { statuses, errors } = verdictOf(event, judged)
        if (errors.length > 0) repetition?.inPart()
        const unpublished = errors.some(({ errorCode }) => errorCode !== 'topic.created')
          ? 'blocked'
          : 'failed'
        const outcome = published.length > 0 ? 'published' : unpublished
        const isPublished = published.length > 0
        const of = isPublished ? { livestreams: [...published] } : {}
        const refusedServices = isPublished ? completed.filter((service) => !services.includes(service)) : []
        const report = { ...describe({ outcome, value: event, errors, id, ...of }), statuses }
        return {
          messages: [
            ...radioMessages(stored, payload, { kind, time, institutionId, livestreamIds: published, now }),
            answeredMessage(institutionId, report, { payload: source, value: event, refusedServices }),
          ],
          topics: topics.missing([...ids], now, unlistedOf(event.services, verdicts, institutionId)),
          accepted: published.length > 0 ? accepted : undefined,
          repetition,
          alongside: arrival.alongside,
          way,
        }
      })
    } catch (error) {
      metrics.storeFailures.inc()
      metrics.events.inc({ outcome: 'failed' })
      log.error({ err: error, event: kind.name }, 'event not stored')
      return { outcome: 'failed' }
    }
    const { published, verdicts } = judged
    const blocked = blockedOf(verdicts)
    const unpublished = blocked.length > 0 ? 'blocked' : 'topic-created'
    metrics.events.inc({ outcome: published.length > 0 ? 'published' : unpublished })
    count(blocked)
    if (blocked.length > 0) {
      const refused = event.services.filter((_, index) => isBlocked(verdicts[index]))
      log.info(
        {
          ...{ outcome: 'blocked', event: kind.name, institutions: [institutionId] },
          services: refused.slice(0, 5).map(({ externalId }) => externalId.slice(0, 200)),
          error: blocked[0],
        },
        'event refused',
      )
    }
    if (published.length > 0) {
      const took = metrics.stages.finish(way, { id, event: kind.name, at: now })
      metrics.recordBudget(took)
    }
    return answer(event, judged, id)

    /** What is kept of the answer. */
    function describe({ outcome, value, ...details }: Described): Report {
      const report = describeOutcome(outcome, value, {
        ...{ ...details, receivedAt: arrival.at, payload: source },
      })
      return { ...report, event: eventName }
    }

    /** The answer is true without it: the publisher gets it in any case. */
    async function keepReport(report: Report, value: unknown): Promise<void> {
      try {
        await store(() => ({
          messages: [answeredMessage(institutionId, report, { payload: source, value })],
          topics: { created: [], changes: [] },
          accepted: undefined,
          repetition: undefined,
          alongside: arrival.alongside,
          way,
        }))
      } catch (error) {
        metrics.storeFailures.inc()
        log.warn({ err: error, event: eventName }, 'refused event not in the history')
      }
    }
  }

  /** The verdicts on the services of an event, and where it goes by them. */
  function judge(services: readonly Service[], institutionId: string, by: Ownership): Judged {
    const verdicts = verdictsOn(services, institutionId, by)
    const ids = new Set(verdicts.flatMap((verdict) => livestreamOf(verdict) ?? []))
    const fresh = new Set([...ids].filter((id) => !topics.get(id)))
    const published = [...ids].filter((id) => !fresh.has(id))
    const completed = services.map((service, index) => complete(service, verdicts[index]))
    return { verdicts, ids, fresh, published, completed }
  }

  /** One verdict for each service. */
  function verdictsOn(services: readonly Service[], institutionId: string, by: Ownership): Verdict[] {
    let room: number | undefined
    return services.map((service, index): Verdict => {
      const path = `.services.${index}`
      const verdict = judgeService(service, path, institutionId, by)
      if ('blocked' in verdict || !verdict.isUnlisted || topics.get(verdict.livestreamId)) return verdict
      room ??= maxUnlisted - topics.countOf(institutionId)
      if (room-- > 0) return verdict
      const detail = `${institutionId} has ${maxUnlisted} such livestreams already`
      return { blocked: errorItem('service.unknown', `${path}.externalId`, detail) }
    })
  }

  function refused(outcome: string, errors: readonly ErrorItem[], dryRun: boolean): void {
    metrics.events.inc({ outcome: dryRun ? 'dry-run' : outcome })
    if (!dryRun) count(errors)
  }

  function count(errors: readonly ErrorItem[]): void {
    for (const { errorCode } of errors) metrics.eventErrors.inc({ code: errorCode })
  }
}

type Described = Omit<Parameters<typeof describeOutcome>[2], 'receivedAt' | 'payload'> & {
  outcome: Report['outcome']
  value: unknown
}

/** The event, or what is wrong with it and `value`, as far as it could be read. */
function readEvent(
  payload: Buffer,
  urlEventName: string,
  now: number,
): Exclude<ReturnType<typeof checkShape>, { errors: ErrorItem[] }> | { errors: ErrorItem[]; value: unknown } {
  if (payload.length > maxPayloadBytes) {
    const detail = `${payload.length} bytes, expected at most ${maxPayloadBytes}`
    return { errors: [errorItem('payload.size', '.', detail)], value: undefined }
  }
  const parsed = parseJson(payload)
  if ('errors' in parsed) return { ...parsed, value: undefined }
  const shape = checkShape(parsed.value, { door: 'https', now, urlEventName })
  return 'errors' in shape ? { ...shape, value: parsed.value } : shape
}

/** The livestreams among them that no feed ever listed. */
function unlistedOf(
  services: readonly Service[],
  verdicts: readonly Verdict[],
  institutionId: string,
): Map<string, Unlisted> {
  const unlisted = new Map<string, Unlisted>()
  for (const [index, { externalId }] of services.entries()) {
    const verdict = verdicts[index]
    if (verdict && 'livestreamId' in verdict && verdict.isUnlisted) {
      unlisted.set(verdict.livestreamId, { institutionId, externalId })
    }
  }
  return unlisted
}

interface Judged {
  /** One for each service, in their order. */
  verdicts: readonly Verdict[]
  /** The livestreams of the services that are not blocked. */
  ids: ReadonlySet<string>
  /** Those of `ids` that have no topic. */
  fresh: ReadonlySet<string>
  /** Those of `ids` that have a topic: the event goes to them. */
  published: readonly string[]
  /** The services as the hub knows them. */
  completed: readonly Service[]
}

/** What was decided in numbers of services, and why. */
function verdictOf(event: HubEvent, { verdicts, fresh, published }: Judged) {
  const blocked = event.services.filter((_, index) => isBlocked(verdicts[index]))
  return {
    statuses: { published: published.length, blocked: eachOnce(blocked).length, failed: fresh.size },
    errors: verdicts.flatMap((verdict, index) => explain(verdict, `.services.${index}`, fresh)),
  }
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

function blockedOf(verdicts: readonly Verdict[]): ErrorItem[] {
  return verdicts.flatMap((verdict) => ('blocked' in verdict ? [verdict.blocked] : []))
}

function isBlocked(verdict: Verdict | undefined): boolean {
  return verdict !== undefined && 'blocked' in verdict
}

/** Why an event did not go out for a service; nothing when it did. */
function explain(verdict: Verdict, path: string, fresh: ReadonlySet<string>): ErrorItem[] {
  if ('blocked' in verdict) return [verdict.blocked]
  return fresh.has(verdict.livestreamId) ? [errorItem('topic.created', path, 'send the event again')] : []
}

function complete(service: Service, verdict: Verdict | undefined): Service {
  if (!verdict || 'blocked' in verdict) return service
  return { ...service, id: verdict.livestreamId, publisherId: verdict.publisherId }
}

/** Where an accepted service goes. The id of a blocked one is only what the publisher claims. */
function livestreamOf(verdict: Verdict | undefined): string | undefined {
  return verdict && 'livestreamId' in verdict ? verdict.livestreamId : undefined
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
