import { deriveLivestreamId, derivePublisherId } from '../event/derived-id.ts'
import { type ErrorItem, errorItem, quote } from '../event/error.ts'
import { isPublisherUrn, serviceTypes } from '../event/format.ts'
import type { Service } from '../event/schema.ts'
import { isCrid } from './feed/external-id.ts'
import type { Feed, Livestream, LivestreamIndex } from './feed/feed.ts'
import { eachOnce } from './messages.ts'
import type { Topics, Unlisted } from './topics.ts'

/**
 * Maximum number of topics that one institution may own for livestreams that no feed ever listed. Trying out the hub
 * needs far fewer. Made-up names must not fill the hub.
 */
const maxUnlisted = 2_000

/** Sources for the owners of livestreams, in the order in which `judgeService` asks. */
export interface Ownership {
  feed: Feed
  former: LivestreamIndex
  ownerOf: Topics['ownerOf']
}

/** The livestream of a service in an HTTPS event, or the error that blocks the service. */
export type Verdict =
  | {
      livestreamId: string
      publisherId: string
      /** No feed ever listed the livestream. */
      isUnlisted: boolean
      blocked?: undefined
    }
  | { blocked: ErrorItem; livestreamId?: undefined; isUnlisted?: undefined }

/**
 * Judges one service by the legacy rules (design.md §9). Who owns a livestream: docs/decisions, "A livestream
 * outside of the feed has an owner".
 */
export function judgeService(service: Service, path: string, institutionId: string, by: Ownership): Verdict {
  const { publisherId: given, externalId } = service
  const publisherId = isPublisherUrn(given) ? given : derivePublisherId(given)
  const isOwn = ({ institution }: Livestream) => institution.id === institutionId
  const isOfPublisher = ({ publisher }: Livestream) => publisher.id === publisherId
  const isOwnPublisher = by.feed.isPublisherOf(publisherId, institutionId)
  if (service.institutionId !== undefined && service.institutionId !== institutionId) {
    const detail = `${service.institutionId}, expected ${institutionId}`
    return { blocked: errorItem('service.institution.claim', `${path}.institutionId`, detail) }
  }

  const known = by.feed.byExternalId.get(externalId) ?? []
  if (known.length > 0) {
    const own = known.filter(isOwn)
    if (own.length === 0) return foreign()
    const named = own.filter(isOfPublisher)
    return named.length > 0 ? choose(named) : wrongPublisher(own)
  }
  // The livestream as the feed lists it now, or else as a feed listed it last.
  const asListed = (former: Livestream) =>
    by.feed.byId.get(former.id) ?? by.former.byId.get(former.id) ?? former
  const dropped = (by.former.byExternalId.get(externalId) ?? []).map(asListed)
  if (dropped.length > 0) {
    const own = dropped.filter(isOwn)
    if (own.length === 0) return foreign()
    // Accepts the publisher that a feed named last for the livestream. That publisher may have left the feed too.
    const named = own.filter(isOfPublisher)
    if (named.length > 0) return choose(named)
    return isOwnPublisher ? choose(own) : wrongPublisher(own)
  }

  if (!isOwnPublisher) return wrongPublisher([])
  // A made-up external id may lead to the id of a listed or former livestream. This can happen with every service type,
  // so the hub tries all of them. If one leads to such a livestream, the hub blocks the service.
  const derived = serviceTypes.map((type) => deriveLivestreamId(type, externalId))
  if (derived.some((id) => by.feed.byId.get(id) ?? by.former.byId.get(id)))
    return ambiguous('.externalId', quote(externalId))
  const alike = [...by.feed.likeExternalId(externalId), ...by.former.likeExternalId(externalId).map(asListed)]
  if (alike.length > 0 && !alike.some(isOwn)) return foreign()
  const livestreamId = deriveLivestreamId(service.type, externalId)
  const owner = by.ownerOf(livestreamId, externalId, institutionId)
  // The topic is from an earlier release and names no owner. Nobody gets the livestream before a feed lists it.
  if (owner === 'unknown') return { blocked: errorItem('service.unknown', `${path}.externalId`, externalId) }
  if (owner !== undefined && owner !== institutionId) return foreign()
  return accept(livestreamId, true)

  /**
   * Accepts one of `named`: livestreams with the same external id. If there are several, the `id` of the service
   * chooses one. Without `id`, the `type` of the service chooses, if only one livestream has that type.
   */
  function choose(named: readonly Livestream[]): Verdict {
    const fits = ({ id, type }: Livestream) =>
      service.id === undefined ? type === service.type : id === service.id
    const [only, another] = named.length === 1 ? named : named.filter(fits)
    if (only && !another) return accept(only.id)
    if (service.id !== undefined) return ambiguous('.id', quote(service.id))
    return ambiguous('.externalId', `${externalId} names ${named.length} livestreams, expected an id as well`)
  }

  function accept(livestreamId: string, isUnlisted = false): Verdict {
    if (service.id !== undefined && service.id !== livestreamId) return ambiguous('.id', quote(service.id))
    return { livestreamId, publisherId, isUnlisted }
  }

  function ambiguous(at: string, detail: string): Verdict {
    return { blocked: errorItem('service.ambiguous', path + at, detail) }
  }

  /** The answer reveals nothing about livestreams of other institutions. */
  function foreign(): Verdict {
    const detail = `${quote(externalId)} is not one of ${institutionId}`
    return { blocked: errorItem('service.institution.mismatch', path, detail) }
  }

  /**
   * Blocks the service, because its publisher is wrong. `own`: the livestreams of the institution with this external
   * id. Empty: no feed ever listed a livestream with this external id.
   */
  function wrongPublisher(own: readonly Livestream[]): Verdict {
    const expected = own.map(({ publisher }) => publisher.id).join(' or ')
    const why = own.length > 0 ? `, expected ${expected}` : ` is unknown, or not one of ${institutionId}`
    return { blocked: errorItem('service.publisher.mismatch', `${path}.publisherId`, quote(given) + why) }
  }
}

/** An external id that no feed ever listed must be a CRID (service.md §2.3). */
export function checkNames(services: readonly Service[], { feed, former }: Ownership): ErrorItem[] {
  return services.flatMap(({ externalId }, index) => {
    const isKnown = [feed, former].some(({ byExternalId }) => (byExternalId.get(externalId)?.length ?? 0) > 0)
    if (isKnown || isCrid(externalId)) return []
    const detail = `${quote(externalId)}, expected crid://<authority>/<id>`
    return [errorItem('pattern.openapi.validation', `.services.${index}.externalId`, detail)]
  })
}

/** What becomes of the services of an event. */
export interface Judged {
  /** One verdict for each service, in the order of the services. */
  verdicts: readonly Verdict[]
  /** The livestreams of the services that are not blocked. */
  ids: ReadonlySet<string>
  /** Those of `ids` that have no topic. */
  withoutTopic: ReadonlySet<string>
  /** Those of `ids` that have a topic: the event is published for them. */
  withTopic: readonly string[]
  /** All services of the event. In the accepted ones, the hub has set `id` and `publisherId`. */
  completed: readonly Service[]
  blocked: readonly { service: Service; error: ErrorItem }[]
  /** Why the event is not published for some services: they are blocked, or their livestream has no topic yet. */
  errors: ErrorItem[]
  /** Numbers of services by outcome. */
  statuses: { published: number; blocked: number; failed: number }
  /** The livestreams of accepted services that no feed ever listed. */
  unlisted: ReadonlyMap<string, Unlisted>
}

/** Judges all services of an event. */
export function judge(
  services: readonly Service[],
  institutionId: string,
  by: Ownership,
  topics: Pick<Topics, 'stored' | 'has' | 'countOf'>,
): Judged {
  const verdicts = verdictsOn(services, institutionId, by, topics)
  const ids = new Set(verdicts.flatMap(({ livestreamId }) => livestreamId ?? []))
  const withoutTopic = new Set([...ids].filter((id) => !topics.stored.has(id)))
  const withTopic = [...ids].filter((id) => !withoutTopic.has(id))
  const blocked = services.flatMap((service, index) => {
    const error = verdicts[index]?.blocked
    return error ? [{ service, error }] : []
  })
  const unlisted = services.flatMap(({ externalId }, index) => {
    const verdict = verdicts[index]
    return verdict?.isUnlisted ? [[verdict.livestreamId, { institutionId, externalId }] as const] : []
  })
  return {
    verdicts,
    ids,
    withoutTopic,
    withTopic,
    completed: services.map((service, index) => complete(service, verdicts[index])),
    blocked,
    errors: verdicts.flatMap(({ blocked, livestreamId = '' }, index) => {
      if (blocked || !withoutTopic.has(livestreamId)) return blocked ?? []
      return errorItem('topic.created', `.services.${index}`, 'send the event again')
    }),
    statuses: {
      published: withTopic.length,
      blocked: eachOnce(blocked.map(({ service }) => service)).length,
      failed: withoutTopic.size,
    },
    unlisted: new Map(unlisted),
  }
}

function verdictsOn(
  services: readonly Service[],
  institutionId: string,
  by: Ownership,
  topics: Pick<Topics, 'has' | 'countOf'>,
): Verdict[] {
  let room: number | undefined
  const added = new Set<string>()
  return services.map((service, index): Verdict => {
    const path = `.services.${index}`
    const verdict = judgeService(service, path, institutionId, by)
    if (!verdict.isUnlisted || topics.has(verdict.livestreamId)) return verdict
    room ??= maxUnlisted - topics.countOf(institutionId)
    if (added.size < room) added.add(verdict.livestreamId)
    if (added.has(verdict.livestreamId)) return verdict
    const detail = `${institutionId} has ${maxUnlisted} such livestreams already`
    return { blocked: errorItem('service.unknown', `${path}.externalId`, detail) }
  })
}

function complete(service: Service, verdict: Verdict | undefined): Service {
  if (!verdict || verdict.blocked) return service
  return { ...service, id: verdict.livestreamId, publisherId: verdict.publisherId }
}
