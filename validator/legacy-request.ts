import { type ErrorItem, errorItem } from '../event/error.ts'
import { checkShape } from '../event/shape.ts'
import { checkOutgoingSize, checkTotalSize, parsePayload } from './decide.ts'
import type { FeedInUse, LivestreamIndex } from './feed/feed.ts'
import type { Topics } from './topics.ts'
import { checkNames, type Judged, judge, type Ownership } from './verdict.ts'

/** An event that came in over HTTPS. */
export interface LegacyRequest {
  payload: Buffer
  eventName: string
  institutionId: string
  /** A dry run: the event is neither stored nor published. */
  dryRun?: boolean
}

/** An event that is not refused as a whole: each service has a verdict. */
export interface Judgeable extends Readable {
  refused?: undefined
  /** Number of livestreams that the services name. Blocked services count, because judging them takes long. */
  livestreams: number
  judged: Judged
  /** Judges the services by the topics that there are now. */
  judgeAgain: () => Judged
}

/** An event that is refused as a whole. */
export interface RequestRefused {
  refused: 'invalid' | 'unavailable'
  errors: ErrorItem[]
  /** The readable part of the payload. */
  value: unknown
  /** Number of livestreams that the services name; 0 if they were not counted. */
  livestreams: number
}

/** Returns the verdict on each service, or why the event is refused as a whole. */
export function judgeRequest(
  { payload, eventName, institutionId }: LegacyRequest,
  now: number,
  { feed, former, topics }: { feed: FeedInUse; former: LivestreamIndex; topics: Topics },
): RequestRefused | Judgeable {
  const shape = readEvent(payload, eventName, now)
  const livestreams = 0
  if ('errors' in shape) return { refused: 'invalid', ...shape, livestreams }
  const { event } = shape
  const current = feed.inUse?.feed
  if (!current) {
    const errors = [errorItem('feed.unavailable', '.')]
    return { refused: 'unavailable', errors, value: event, livestreams }
  }
  const by: Ownership = { feed: current, former, ownerOf: topics.ownerOf }
  const misnamed = checkNames(event.services, by)
  if (misnamed.length > 0) return { refused: 'invalid', errors: misnamed, value: event, livestreams }
  const judgeAgain = () => judge(event.services, institutionId, by, topics)
  const judged = judgeAgain()
  const tooMuch = [
    ...checkTotalSize(payload, judged.ids.size),
    ...checkOutgoingSize(payload, event, () => judged.completed),
  ]
  const named = new Set(event.services.map(({ type, externalId }) => `${type} ${externalId}`)).size
  if (tooMuch.length > 0) return { refused: 'invalid', errors: tooMuch, value: event, livestreams: named }
  return { ...shape, livestreams: named, judged, judgeAgain }
}

type Readable = Exclude<ReturnType<typeof checkShape>, { errors: ErrorItem[] }>

/** Returns the event, or its errors. `value`: the readable part of a faulty payload. */
function readEvent(
  payload: Buffer,
  urlEventName: string,
  now: number,
): Readable | { errors: ErrorItem[]; value: unknown } {
  const parsed = parsePayload(payload)
  if ('errors' in parsed) return { ...parsed, value: undefined }
  const shape = checkShape(parsed.value, { protocol: 'https', now, urlEventName })
  return 'errors' in shape ? { ...shape, value: parsed.value } : shape
}
