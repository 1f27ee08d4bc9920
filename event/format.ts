/*
 * The formats of instants, URNs, URLs and event ids. Instants are read by the code that clients have, so that the hub and its
 * clients order events alike.
 */

import { instant } from '../client/instant.ts'

export { parseInstant } from '../client/instant.ts'

/** Pattern of instants for the API description. It matches impossible dates too. */
export const instantPattern = instant.source

/** Kind of livestream URN for each service type (service.md §2.3, design.md §5). */
export const livestreamKinds = {
  PermanentLivestream: 'permanent-livestream',
  Livestream: 'livestream',
  Event: 'event-livestream',
} as const

/** Type of a service, as events and the feed write it. */
export type ServiceType = keyof typeof livestreamKinds

/** All service types, in the order of service.md §2.3. */
export const serviceTypes: readonly ServiceType[] = ['Event', 'Livestream', 'PermanentLivestream']

/** Pattern of every URN (service.md §2.4). No dot, no slash: a URN can be a topic level. */
export const urnPattern = '^urn:org:[a-z0-9-]+:[a-z0-9-]+$'

/** Longest URN, characters. This limit bounds the length of topics and filters, which contain URNs. */
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

const urn = new RegExp(urnPattern)

/**
 * Whether `text` is a URL with a host. Spaces, line breaks and backslashes are refused, because `new URL` drops or
 * replaces them: another URL would be called than the one that is shown and signed.
 */
export function isWholeUrl(text: string): boolean {
  return wholeUrl.test(text) && URL.canParse(text)
}

const wholeUrl = /^[a-z][a-z0-9+.-]*:\/\/[^\s\p{Cc}\\]+$/iu

/**
 * Returns a function that makes event ids: decimal numbers, ordered by time. Within the process, ids strictly increase,
 * even if the clock steps back. Ids are unique across nodes (design.md §5).
 *
 * `timeOf` turns the time of the clock into that of the id. The hub passes `journal.timeOf`: then ids follow the order
 * of the journal, even if the clock was set back before a restart.
 *
 * The bits of an id: milliseconds since the epoch, 32 random bits for the node, a 16-bit counter.
 */
export function createEventIds(
  clock: () => number = Date.now,
  timeOf: (now: number) => number = (now) => now,
): () => string {
  const [node = 0] = crypto.getRandomValues(new Uint32Array(1))
  let last = 0
  let counter = 0
  return () => {
    const now = Math.floor(timeOf(clock()))
    if (now > last) {
      last = now
      counter = 0
    } else if (++counter > 0xffff) {
      // More than 65,536 ids in one millisecond: use the next millisecond.
      last++
      counter = 0
    }
    return ((BigInt(last) << 48n) | (BigInt(node) << 16n) | BigInt(counter)).toString()
  }
}

/** When an event got its id, milliseconds since the epoch. Undefined: not the form of a hub's id. */
export function timeOfEventId(id: string): number | undefined {
  return /^[1-9][0-9]{14,39}$/.test(id) ? Number(BigInt(id) >> 48n) : undefined
}
