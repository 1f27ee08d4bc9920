import { type ErrorItem, errorItem } from '../event/error.ts'
import type { Service } from '../event/schema.ts'
import type { Feed, Livestream } from './feed/feed.ts'

/**
 * Checks whether an institution may publish for all services of an event (service.md §4.2, design.md §7). The feed
 * decides this, not the payload. Every service must name a livestream of `institutionId`, the institution of the inbox
 * topic. The function reports all errors. A single error blocks the event as a whole.
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

/** Finds the one livestream that a service names. Both its `externalId` and its `id`, if any, must name it. */
function resolveLivestream(
  service: Service,
  path: string,
  institutionId: string,
  feed: Feed,
): { livestream: Livestream } | { error: ErrorItem } {
  const named = feed.byExternalId(service.externalId)
  if (service.id !== undefined) {
    const livestream = feed.byId(service.id)
    if (!livestream) return { error: errorItem('service.unknown', `${path}.id`, service.id) }
    if (named.includes(livestream)) return { livestream }
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
