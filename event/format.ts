/*
 * The formats of texts in events: instants, URNs, and the ids that the hub gives to events. Pages in a browser use
 * `parseInstant`, so this file imports nothing from Node.js.
 */

/**
 * Reads an instant. Returns milliseconds since the epoch, or undefined if `text` is not an instant.
 *
 * Accepts ISO 8601 calendar dates with hours, minutes and an offset (service.md §2, design.md §7). Seconds may be left
 * out. A fraction belongs to the seconds, or to the minutes if there are no seconds. Impossible dates, leap seconds and
 * 24:00 are refused. The result is exact to the microsecond, because events are ordered by it. More digits are cut off.
 */
export function parseInstant(text: string): number | undefined {
  const parts = instant.exec(text)?.groups
  if (parts === undefined) return undefined
  const year = Number(parts.year)
  const month = Number(parts.month)
  const day = Number(parts.day)
  const hour = Number(parts.hour)
  const minute = Number(parts.minute)
  const second = Number(parts.second ?? 0)
  const offsetHour = Number(parts.offsetHour ?? 0)
  const offsetMinute = Number(parts.offsetMinute ?? 0)
  if (hour > 23 || minute > 59 || second > 59 || offsetHour > 23 || offsetMinute > 59) return undefined

  // Do not use Date.UTC: it reads the years 0 to 99 as 1900 to 1999.
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  // A day that does not exist rolls over into the next month.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined

  // Read nine digits of the fraction as a whole number, because for example Number('0.57') * 100 is not exactly 57.
  const billionths = Number((parts.fraction ?? '').slice(0, 9).padEnd(9, '0'))
  const microseconds = Math.floor((billionths * (parts.second === undefined ? 60 : 1)) / 1000)
  const offset = (offsetHour * 60 + offsetMinute) * (parts.sign === '-' ? -1 : 1)
  return date.getTime() + ((hour * 60 + minute - offset) * 60 + second) * 1000 + microseconds / 1000
}

const instant =
  /^(?<year>\d{4})-(?<month>\d\d)-(?<day>\d\d)[Tt](?<hour>\d\d):(?<minute>\d\d)(?::(?<second>\d\d))?(?:[.,](?<fraction>\d+))?(?:[Zz]|(?<sign>[+-])(?<offsetHour>\d\d)(?::?(?<offsetMinute>\d\d))?)$/

/** Pattern of an instant for the API description. It also matches dates that do not exist, such as 30 February. */
export const instantPattern = instant.source.replace(/\?<\w+>/g, '')

/** The service types of service.md §2.3. Each has its own kind of livestream URN (design.md §5). */
export const livestreamKinds = {
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

const urn = new RegExp(urnPattern)

/**
 * Returns a function that makes event ids. An id is a numeric string. Ids are ordered by time. They strictly increase
 * within the process even when the clock steps back, and are unique across nodes that do not know each other (design.md
 * §5).
 *
 * `timeOf` takes the time of the clock, and returns the time that the id gets. With `journal.timeOf`, ids follow the order
 * of the journal even if the clock was set back before a restart.
 *
 * The bits of an id: milliseconds since the epoch, 32 random bits that stand for the node, and a 16-bit counter. The id
 * is written in decimal.
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

/** When an event got its id, milliseconds since the epoch. Undefined: the id does not have the form of a hub's id. */
export function timeOfEventId(id: string): number | undefined {
  return /^[1-9][0-9]{14,39}$/.test(id) ? Number(BigInt(id) >> 48n) : undefined
}
