import { livestreamsIn } from '../../acl/access.ts'
import { onceForEach } from '../../telemetry/once-for-each.ts'
import type { Feed, Livestream } from '../../validator/feed/feed.ts'
import { refuseUntil } from '../answer.ts'
import { Livestreams, SilentLivestreams } from '../description/page-schemas.ts'
import { answerKept, type Kept, keepParts, notModified } from '../kept.ts'
import type { Route } from './route.ts'

/** Seconds a client is asked to wait while there is no feed. */
const retrySeconds = 30
/** Number of entries that are written into a list in one turn of the event loop: about a millisecond of work. */
const perTurn = 1_000

/**
 * The route that lists the livestreams with their names. Pages need this list, because events identify livestreams by
 * ids.
 */
export function livestreamRoutes(parts: {
  feed: () => Feed | undefined
  /** Livestreams that are silent for longer than usual. `since`: of their last event, milliseconds since the epoch. */
  silent: () => readonly { livestreamId: string; since: number }[]
  isPagePublic: boolean
}): Route[] {
  /** The whole list of a feed: it may have megabytes. */
  const listOf = onceForEach((feed: Feed) => makeList(feed.all()))
  const base = {
    method: 'GET',
    tag: 'Pages',
    permission: 'subscribe',
    strangers: parts.isPagePublic,
    readers: true,
    crossOrigin: true,
  } as const
  return [
    {
      ...base,
      path: '/livestreams',
      id: 'listLivestreams',
      summary: 'List the livestreams of the feed with their titles and institutions',
      description:
        'A node with a public page (`HUB_PUBLIC_PAGE`) answers without a token as well. Readers get the livestreams that their filters can match.',
      answers: {
        200: { description: 'The livestreams', schema: Livestreams },
        304: notModified,
        503: 'There is no livestream feed yet',
      },
      async handle({ header, filters }) {
        const feed = parts.feed()
        if (!feed) return refuseUntil(503, retrySeconds)
        const ids = livestreamsIn(filters)
        const list = ids ? makeList([...ids].flatMap((id) => feed.byId.get(id) ?? [])) : listOf(feed)
        return answerKept(await list, header)
      },
    },
    {
      ...base,
      path: '/livestreams/silent',
      id: 'listSilentLivestreams',
      summary: 'List the livestreams that have had no event for longer than usual at this hour',
      description: 'For whom `GET /livestreams` is.',
      answers: { 200: { description: 'Those that are silent', schema: SilentLivestreams } },
      handle({ filters }) {
        const ids = livestreamsIn(filters)
        const seen = parts.silent().filter(({ livestreamId }) => ids?.has(livestreamId) ?? true)
        const livestreams = seen.map(({ livestreamId: id, since }) => ({
          id,
          since: new Date(since).toISOString(),
        }))
        return { status: 200, body: { livestreams, trace: null } }
      },
    },
  ]
}

/** Makes the list in several turns of the event loop, so that no event waits for a long list. */
async function makeList(listed: AsyncIterable<Livestream> | Iterable<Livestream>): Promise<Kept> {
  const institutions = new Map<string, string>()
  const livestreams: string[] = []
  for await (const { id, title, institution } of listed) {
    institutions.set(institution.id, JSON.stringify(institution))
    livestreams.push(JSON.stringify({ id, title, institutionId: institution.id }))
  }
  const parts = ['{"institutions":[', ...inParts([...institutions.values()]), '],"livestreams":[']
  return keepParts([...parts, ...inParts(livestreams), '],"trace":null}'])
}

/** The entries of a list, with commas. */
function inParts(entries: readonly string[]): string[] {
  const parts: string[] = []
  for (let start = 0; start < entries.length; start += perTurn) {
    parts.push((start > 0 ? ',' : '') + entries.slice(start, start + perTurn).join())
  }
  return parts
}
