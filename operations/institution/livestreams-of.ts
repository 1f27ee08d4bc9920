import { onceForEach } from '../../telemetry/once-for-each.ts'
import { inTurns } from '../../telemetry/turns.ts'
import type { Feed, Livestream } from '../../validator/feed/feed.ts'
import type { NodeParts } from '../node-parts.ts'

/** A livestream of an institution. Null: the feed does not say. */
export interface OwnLivestream {
  id: string
  institutionId: string | null
  externalId: string | null
  title: string | null
  publisherId: string | null
  isListed: boolean
}

type LivestreamParts = Pick<NodeParts, 'feed' | 'topics'>

/** The livestreams of an institution: those of the feed, and others that it has made or had. */
export async function livestreamsOf(parts: LivestreamParts, institutionId: string): Promise<OwnLivestream[]> {
  const feed = parts.feed.current()
  const listed = feed ? ((await idsByInstitution(feed)).get(institutionId) ?? []) : []
  const others = await inTurns(parts.topics.stored.keys(), (id) => (feed?.byId.get(id) ? undefined : id))
  const found = await inTurns([...listed, ...others], (id) =>
    id === undefined ? undefined : livestreamNamed(parts, id),
  )
  return found.filter((one) => one !== undefined).filter((one) => one.institutionId === institutionId)
}

/** The livestream with this id, with the institution that it belongs to (design.md §7). Undefined: there is none. */
export function livestreamNamed({ feed, topics }: LivestreamParts, id: string): OwnLivestream | undefined {
  const listed = feed.current()?.byId.get(id)
  const known: Livestream | undefined = listed ?? feed.former.byId.get(id)
  const topic = topics.stored.get(id)
  if (!known && !topic) return undefined
  return {
    id,
    institutionId: known?.institution.id ?? topic?.institutionId ?? null,
    externalId: known?.externalId ?? null,
    title: known?.title ?? null,
    publisherId: known?.publisher.id ?? null,
    isListed: listed !== undefined,
  }
}

/** The ids of the livestreams of each institution of a feed: it may list 50,000. */
const idsByInstitution = onceForEach(async (feed: Feed): Promise<ReadonlyMap<string, readonly string[]>> => {
  const ids = new Map<string, string[]>()
  for await (const { id, institution } of feed.all()) {
    const list = ids.get(institution.id)
    if (list) list.push(id)
    else ids.set(institution.id, [id])
  }
  return ids
})
