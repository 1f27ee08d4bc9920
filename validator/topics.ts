import type { Change, Store } from '../store/store.ts'

export type Topics = Awaited<ReturnType<typeof createTopics>>

/** The topic of a livestream, as the legacy API lists it. */
export interface Topic {
  /** Livestream URN. */
  id: string
  createdAt: string
  /** Who published first for a livestream that the feed does not know. */
  institutionId?: string
}

/**
 * The topics that exist: one per livestream, from its first event on (service.md §1). They are stored
 * with that event, so that an accepted event always has its topic.
 */
export async function createTopics(store: Store) {
  const topics = new Map<string, Topic>()
  for await (const [, value] of store.range(prefix)) take(value)
  store.watch?.(prefix, (change) => {
    if ('put' in change) take(change.value)
  })

  return {
    /** All topics, by livestream. */
    list: (): Topic[] => [...topics.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
    get: (livestreamId: string): Topic | undefined => topics.get(livestreamId),

    /** How many topics an institution has for livestreams that the feed does not know. */
    countOf: (institutionId: string): number =>
      [...topics.values()].filter((topic) => topic.institutionId === institutionId).length,

    /**
     * The topics that these livestreams lack, and the changes that store them. `institutionOf` tells whose
     * they are, where the feed does not.
     */
    missing(
      livestreamIds: readonly string[],
      now: number,
      institutionOf: (livestreamId: string) => string | undefined = () => undefined,
    ): { created: Topic[]; changes: Change[] } {
      const createdAt = new Date(now).toISOString()
      const created = [...new Set(livestreamIds)]
        .filter((id) => !topics.has(id))
        .map((id): Topic => {
          const institutionId = institutionOf(id)
          return { id, createdAt, ...(institutionId !== undefined && { institutionId }) }
        })
      return {
        created,
        changes: created.map((topic) => ({ put: prefix + topic.id, value: JSON.stringify(topic) })),
      }
    },

    /** Shows topics that are stored now. Of two events that created one at once the later is stored, and shown. */
    show(created: readonly Topic[]): void {
      for (const topic of created) topics.set(topic.id, topic)
    },
  }

  function take(value: Buffer): void {
    const topic: Topic = JSON.parse(value.toString())
    topics.set(topic.id, topic)
  }
}

const prefix = 'topic/'
