/** A group of routes that retire together (service.md §9). */
export type ApiTrack = (typeof tracks)[number]
export const tracks = ['push', 'publish'] as const

export type TrackState = 'live' | 'deprecated' | 'gone'

/** The state of a track. Times are ISO 8601. */
export interface TrackStatus {
  track: ApiTrack
  state: TrackState
  announcedAt: string | null
  /** From this instant on the track may be retired. */
  sunset: string | null
  /** URL of a page that says what users have to do. */
  link: string | null
  retiredAt: string | null
  /** Until this instant the routes of the track answer 503, so that users notice. */
  brownoutUntil: string | null
}

/** Longest brown-out, seconds. A longer one would be a retirement. */
export const maxBrownout = 24 * 3600

/** An announcement as an operator typed it. */
export interface Announcement {
  track: ApiTrack
  sunset: string
  link: string
}

/** Whether there is a track of this name. */
export function isTrack(text: string): text is ApiTrack {
  return tracks.some((track) => track === text)
}

/** Checks an announcement, for the CLI and for the node. Returns the instant of its sunset, or an error text. */
export function checkAnnouncement({ sunset, link }: Announcement): { at: Date } | { error: string } {
  const at = parseDate(sunset)
  if (!at) {
    return {
      error: `sunset must be a date such as 2027-12-31 or an instant such as 2027-12-31T12:00:00Z, of the years 2000 to 9998, not ${JSON.stringify(sunset)}`,
    }
  }
  // Brackets and white space would end the value of the Link header (RFC 8288 §3).
  if (!/^https?:\/\/[!-~]+$/.test(link) || /[<>"]/.test(link) || !URL.canParse(link)) {
    return { error: `link must be an http or https URL, not ${JSON.stringify(link)}` }
  }
  return { at }
}

/**
 * Parses an instant, or a date as its first instant in UTC. Undefined: there is no such date, or its year is not from
 * 2000 to 9998. HTTP headers cannot express years of five digits.
 */
function parseDate(text: string): Date | undefined {
  const [, date = '', time] =
    /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/.exec(text) ?? []
  const day = new Date(`${date}T00:00:00Z`)
  // Some parsers take 2026-02-30 for the 2nd of March.
  if (Number.isNaN(day.getTime()) || !day.toISOString().startsWith(date)) return undefined
  const instant = time === undefined ? day : new Date(text)
  const year = instant.getUTCFullYear()
  return year >= 2000 && year <= 9998 ? instant : undefined
}
