import { onceForEach } from '../telemetry/once-for-each.ts'
import type { Feed, LivestreamIndex } from '../validator/feed/feed.ts'
import type { Topics } from '../validator/topics.ts'
import type { View } from './view.ts'

export type Livestreams = ReturnType<typeof createLivestreams>

/** A livestream and its institution, by the names that the feed gives them. Null: the feed does not say. */
export interface NamedLivestream {
  id: string
  title: string | null
  institution: { id: string | null; title: string | null }
}

/** The ids of the livestreams of a feed, sorted, and as a set: it may list 50,000, and unpacks each that is looked up. */
const listed = onceForEach(async (feed: Feed) => {
  const ids: string[] = []
  for await (const { id } of feed.all()) ids.push(id)
  return { sorted: ids.sort(), all: new Set(ids) }
})
const nothing = { sorted: [], all: new Set<string>() }

/** The livestreams that can be read: those of the feed, and others that have a topic. */
export function createLivestreams({
  feed,
  former,
  topics,
}: {
  feed: () => Feed | undefined
  former: Pick<LivestreamIndex, 'byId'>
  topics: Pick<Topics, 'stored'>
}) {
  return {
    /** The livestream with this id. Undefined: there is none, or the view shows nothing of it. */
    find(id: string, view: View): NamedLivestream | undefined {
      if (view.livestreams && !view.livestreams.has(id)) return undefined
      const found = feed()?.byId.get(id) ?? former.byId.get(id)
      if (found) {
        const { title, institution } = found
        return { id, title, institution: { id: institution.id, title: institution.title } }
      }
      const topic = topics.stored.get(id)
      return topic && { id, title: null, institution: { id: topic.institutionId ?? null, title: null } }
    },

    /** The ids of all livestreams that the view may show, sorted. */
    async ids(view: View): Promise<readonly string[]> {
      if (view.livestreams) return [...view.livestreams].sort()
      const current = feed()
      const ofFeed = current ? await listed(current) : nothing
      const others = [...topics.stored.keys()].filter((id) => !ofFeed.all.has(id))
      return others.length === 0 ? ofFeed.sorted : [...ofFeed.sorted, ...others].sort()
    },
  }
}
