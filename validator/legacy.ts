import { type ErrorItem, errorItem } from '../event/error.ts'
import { parseJson } from '../event/json.ts'
import type { HubEvent, Service } from '../event/schema.ts'
import { checkShape } from '../event/shape.ts'
import { deriveLivestreamId, derivePublisherId, isPublisherUrn } from '../event/urn.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Arrival } from './arrival.ts'
import { checkSpread, maxPayloadBytes } from './decide.ts'
import type { Feed } from './feed.ts'
import { radioMessages } from './messages.ts'
import type { createStoring } from './storing.ts'
import type { Topics } from './topics.ts'

/**
 * Topics of one institution for livestreams that the feed does not know: far more than anybody tries out, and a
 * publisher that makes up a new name for each event must not fill the hub.
 */
const maxUnlisted = 2_000

/** What became of an event over HTTPS (service.md §2.7, §4.1). */
export type LegacyResult =
  | {
      outcome: 'accepted'
      /** Numbers of services. */
      statuses: { published: number; blocked: number; failed: number }
      /** As stored: with its id, services completed with id and topic. */
      event: Record<string, unknown>
    }
  | { outcome: 'invalid'; errors: ErrorItem[] }
  | { outcome: 'failed' }

/**
 * The legacy rules of publishing (design.md §9): each service has its own verdict, external publisher ids
 * are converted, and a livestream without topic gets one instead of the event (service.md §3).
 */
export function createLegacySubmit(parts: {
  feed: () => Feed | undefined
  topics: Topics
  store: ReturnType<typeof createStoring>
  nextEventId: () => string
  clock: () => number
  log: Log
  metrics: Metrics
}) {
  const { feed, topics, store, nextEventId, clock, log, metrics } = parts

  return async (
    request: { payload: Buffer; eventName: string; institutionId: string },
    arrival: Arrival,
  ): Promise<LegacyResult> => {
    const now = clock()
    const shape = readEvent(request.payload, request.eventName, now)
    if ('errors' in shape) return invalid(shape.errors)
    const { event, kind, time } = shape
    const isListed = (livestreamId: string) => feed()?.byId(livestreamId) !== undefined
    let room: number | undefined
    const verdicts = event.services.map((service) => {
      const verdict = judgeService(service, request.institutionId, feed())
      if (!('livestreamId' in verdict) || isListed(verdict.livestreamId)) return verdict
      if (topics.get(verdict.livestreamId)) return verdict
      room ??= maxUnlisted - topics.countOf(request.institutionId)
      return room-- > 0 ? verdict : { blocked: 'service.unknown' }
    })
    const ids = verdicts.flatMap((verdict) => ('livestreamId' in verdict ? [verdict.livestreamId] : []))
    const tooMuch = checkSpread(request.payload, ids)
    if (tooMuch.length > 0) return invalid(tooMuch)
    const missing = topics.missing(ids, now, (livestreamId) =>
      isListed(livestreamId) ? undefined : request.institutionId,
    )
    const { created } = missing
    const fresh = new Set(created.map((topic) => topic.id))
    const published = [...new Set(ids)].filter((id) => !fresh.has(id))

    const id = nextEventId()
    const completed = event.services.map((service, index) => complete(service, verdicts[index]))
    // Only what was accepted goes out: a blocked service has no place on the air of others.
    const services = completed.filter(({ id: livestreamId }) => published.includes(livestreamId ?? ''))
    const stored: HubEvent = { ...event, id, services }
    const payload = Buffer.from(JSON.stringify(stored))
    const { institutionId, payload: source } = request
    const accepted = { event: stored, id, kind, payload, source, institutionId, livestreamIds: published }
    try {
      await store({
        messages: radioMessages(stored, payload, { kind, time, livestreamIds: published, now }),
        topics: missing,
        accepted: published.length > 0 ? accepted : undefined,
        alongside: arrival.alongside,
      })
    } catch (error) {
      metrics.storeFailures.inc()
      metrics.events.inc({ outcome: 'failed' })
      log.error({ err: error, event: kind.name }, 'event not stored')
      return { outcome: 'failed' }
    }
    const blocked = verdicts.filter((verdict) => 'blocked' in verdict)
    const unpublished = blocked.length > 0 ? 'blocked' : 'topic-created'
    metrics.events.inc({ outcome: published.length > 0 ? 'published' : unpublished })
    for (const verdict of blocked) metrics.eventErrors.inc({ code: verdict.blocked })
    const [first] = blocked
    if (first) {
      const refused = event.services.filter((_, index) => 'blocked' in (verdicts[index] ?? {}))
      log.info(
        {
          ...{ outcome: 'blocked', event: kind.name, institutions: [request.institutionId] },
          services: refused.slice(0, 5).map(({ externalId }) => externalId.slice(0, 200)),
          error: { errorCode: first.blocked },
        },
        'event refused',
      )
    }
    if (published.length > 0) metrics.recordBudget(performance.now() - arrival.started)
    return {
      outcome: 'accepted',
      statuses: { published: published.length, blocked: blocked.length, failed: created.length },
      event: { ...event, id, services: completed.map((service) => withTopic(service, published, fresh, id)) },
    }
  }

  function invalid(errors: ErrorItem[]): LegacyResult {
    metrics.events.inc({ outcome: 'invalid' })
    for (const { errorCode } of errors) metrics.eventErrors.inc({ code: errorCode })
    return { outcome: 'invalid', errors }
  }
}

function readEvent(payload: Buffer, urlEventName: string, now: number): ReturnType<typeof checkShape> {
  if (payload.length > maxPayloadBytes) {
    const detail = `${payload.length} bytes, expected at most ${maxPayloadBytes}`
    return { errors: [errorItem('payload.size', '.', detail)] }
  }
  const parsed = parseJson(payload)
  if ('errors' in parsed) return parsed
  return checkShape(parsed.value, { door: 'https', now, urlEventName })
}

/** Where a service goes, or the code of the rule that blocks it. */
type Verdict = { livestreamId: string; publisherId: string } | { blocked: string }

/** Pure, so that its test is a table. */
export function judgeService(service: Service, institutionId: string, feed: Feed | undefined): Verdict {
  if (!feed) return { blocked: 'feed.unavailable' }
  const { publisherId: given, externalId } = service
  const publisherId = isPublisherUrn(given) ? given : derivePublisherId(given)
  const own = feed.byPublisher(publisherId).find(({ institution }) => institution.id === institutionId)
  if (!own) return { blocked: 'service.publisher.mismatch' }
  if (service.institutionId !== undefined && service.institutionId !== institutionId) {
    return { blocked: 'service.institution.claim' }
  }
  const named = feed.byExternalId(externalId)
  const listed = named.find(({ publisher }) => publisher.id === publisherId)
  if (!listed && named.length > 0) return { blocked: 'service.publisher.mismatch' }
  const livestreamId = listed?.id ?? deriveLivestreamId(service.type, externalId)
  // An id of its own must be the one of the livestream; a derived one must not be somebody else's.
  if (service.id !== undefined && service.id !== livestreamId) return { blocked: 'service.ambiguous' }
  if (!listed && feed.byId(livestreamId)) return { blocked: 'service.ambiguous' }
  return { livestreamId, publisherId }
}

function complete(service: Service, verdict: Verdict | undefined): Service {
  if (!verdict || 'blocked' in verdict) return service
  return { ...service, id: verdict.livestreamId, publisherId: verdict.publisherId }
}

/** The `topic` of a service in the answer; its names are the bridge's (service.md §2.3). */
function withTopic(
  service: Service,
  published: readonly string[],
  fresh: ReadonlySet<string>,
  messageId: string,
): Service & { topic?: { id: string; status: string; messageId: string | null } } {
  const { id } = service
  if (id !== undefined && fresh.has(id)) {
    return { ...service, topic: { id, status: 'TOPIC_CREATED', messageId: null } }
  }
  if (id !== undefined && published.includes(id)) {
    return { ...service, topic: { id, status: 'MESSAGE_SENT', messageId } }
  }
  return service
}
