import { createHash } from 'node:crypto'
import type { Feed, Livestream } from '../../validator/feed/feed.ts'
import { type Answer, refuseUntil } from '../answer.ts'
import { Livestreams } from '../description/page-schemas.ts'
import { PlainError } from '../description/schemas.ts'
import type { Call, Route } from './route.ts'

/** Seconds a client is asked to wait while there is no feed. */
const retrySeconds = 30

/**
 * The route that lists the livestreams with their names. Pages need this list, because events identify livestreams by
 * ids.
 */
export function livestreamRoutes(parts: { feed: () => Feed | undefined; isPagePublic: boolean }): Route[] {
  const listOf = keptLists()
  return [
    {
      method: 'GET',
      path: '/livestreams',
      id: 'listLivestreams',
      summary: 'List the livestreams of the feed with their titles and institutions',
      description: 'A node with a public page (`HUB_PUBLIC_PAGE`) answers without a token as well.',
      tag: 'Pages',
      permission: 'subscribe',
      strangers: parts.isPagePublic,
      crossOrigin: true,
      answers: {
        200: { description: 'All livestreams', schema: Livestreams },
        304: { description: 'The list is that of the header If-None-Match' },
        503: { description: 'There is no livestream feed yet', schema: PlainError, mayRetry: true },
        ...(parts.isPagePublic && { 429: { description: 'Too many questions', schema: PlainError } }),
      },
      handle({ header }) {
        const feed = parts.feed()
        return feed ? answerOf(listOf(feed), header) : refuseUntil(503, retrySeconds)
      },
    },
  ]
}

interface List {
  text: Buffer
  tag: string
}

/** Keeps the list of each feed: a list may have hundreds of kilobytes. */
function keptLists(): (feed: Feed) => List {
  const lists = new WeakMap<Feed, List>()
  return (feed) => {
    const list = lists.get(feed) ?? makeList([...feed.all()])
    lists.set(feed, list)
    return list
  }
}

function makeList(livestreams: readonly Livestream[]): List {
  const text = Buffer.from(JSON.stringify(documentOf(livestreams)))
  return { text, tag: `"${createHash('sha256').update(text).digest('base64url')}"` }
}

function answerOf({ text, tag }: List, header: Call['header']): Answer {
  const headers = { etag: tag, 'cache-control': 'no-cache' }
  const known = (header('if-none-match') ?? '').split(',').map((one) => one.trim().replace(/^W\//, ''))
  return known.includes(tag)
    ? { status: 304, body: undefined, headers }
    : { status: 200, body: text, headers }
}

function documentOf(livestreams: readonly Livestream[]) {
  const institutions = new Map(livestreams.map(({ institution }) => [institution.id, institution]))
  return {
    institutions: [...institutions.values()],
    livestreams: livestreams.map(({ id, title, institution }) => ({
      id,
      title,
      institutionId: institution.id,
    })),
    trace: null,
  }
}
