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

/** The ids of the livestreams of a feed, sorted: it may list 50,000. */
const listed = onceForEach(async (feed: Feed) => {
  const ids: string[] = []
  for await (const { id } of feed.all()) ids.push(id)
  return ids.sort()
})

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
      const ofFeed = current ? await listed(current) : []
      const others = [...topics.stored.keys()].filter((id) => !current?.byId.get(id))
      return others.length === 0 ? ofFeed : [...ofFeed, ...others].sort()
    },
  }
}
