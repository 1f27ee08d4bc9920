import { crc64 } from './crc64.ts'

/** The service types of service.md §2.3. Each has its own kind of livestream URN (design.md §5). */
const livestreamKinds = {
  PermanentLivestream: 'permanent-livestream',
  Livestream: 'livestream',
  Event: 'event-livestream',
} as const

/** Type of a service, as events and the feed write it. */
export type ServiceType = keyof typeof livestreamKinds

/** All service types, in the order of service.md §2.3. */
export const serviceTypes: readonly ServiceType[] = ['Event', 'Livestream', 'PermanentLivestream']

/** Pattern of every URN (service.md §2.4). It allows no dot and no slash, because a URN can be a topic level. */
export const urnPattern = '^urn:org:[a-z0-9-]+:[a-z0-9-]+$'

/** Maximum number of characters of a URN. Topics contain URNs, and the length of topics and filters must be bounded. */
export const maxUrnLength = 200

/** Whether `text` is a URN, of the given kind if one is named. */
export function isUrn(text: string, kind?: string): boolean {
  return (
    text.length <= maxUrnLength &&
    urn.test(text) &&
    (kind === undefined || text.startsWith(`urn:org:${kind}:`))
  )
}

/** Whether `text` is the URN of an institution. */
export function isInstitutionUrn(text: string): boolean {
  return isUrn(text, 'institution')
}

/** Whether `text` is the URN of a publisher. */
export function isPublisherUrn(text: string): boolean {
  return isUrn(text, 'publisher')
}

/** Whether `text` is the URN of a livestream of any service type. */
export function isLivestreamUrn(text: string): boolean {
  return serviceTypes.some((type) => isUrn(text, livestreamKinds[type]))
}

/** The Core ID of a publisher that is known by its external id only (service.md §2.3). */
export function derivePublisherId(externalId: string): string {
  return `urn:org:publisher:${crc64(externalId)}`
}

/** The id of a livestream that is known by its external id only (design.md §5). */
export function deriveLivestreamId(serviceType: ServiceType, externalId: string): string {
  return `urn:org:${livestreamKinds[serviceType]}:${crc64(externalId)}`
}

const urn = new RegExp(urnPattern)
