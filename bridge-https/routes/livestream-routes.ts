import type { Feed, Livestream } from '../../validator/feed/feed.ts'
import { refuseUntil } from '../answer.ts'
import { Livestreams } from '../description/page-schemas.ts'
import { PlainError } from '../description/schemas.ts'
import type { Route } from './route.ts'

/** The feed is read again and again. */
const retrySeconds = 30

/** What livestreams are called: events carry only their ids. */
export function livestreamRoutes(parts: { feed: () => Feed | undefined; isPagePublic: boolean }): Route[] {
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
      answers: {
        200: { description: 'All livestreams', schema: Livestreams },
        503: { description: 'There is no livestream feed yet', schema: PlainError, mayRetry: true },
        ...(parts.isPagePublic && { 429: { description: 'Too many questions', schema: PlainError } }),
      },
      handle() {
        const feed = parts.feed()
        return feed ? { status: 200, body: listOf([...feed.all()]) } : refuseUntil(503, retrySeconds)
      },
    },
  ]
}

function listOf(livestreams: readonly Livestream[]) {
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
