import { radioTree } from '../../acl/access.ts'
import type { Broker } from '../../broker/broker.ts'
import type { RetainedValue } from '../../journal/retained-value.ts'
import type { Livestream } from '../../validator/feed/feed.ts'
import type { LoopMark } from '../../watch/loops.ts'
import type { NodeParts } from '../node-parts.ts'

/** The livestreams with this id, external id or title, and their institutions (`owner`). */
export async function livestreamsNamed(
  { feed, topics }: Pick<NodeParts, 'feed' | 'topics'>,
  name: string,
): Promise<{ id: string; externalId?: string; owner?: string }[]> {
  const known = [feed.current(), feed.former]
  const direct = known.map((livestreams) => livestreams?.byId.get(name)).find((one) => one !== undefined)
  if (direct) return [shown(direct)]
  const external = known.map((livestreams) => livestreams?.byExternalId.get(name) ?? [])
  const found = external.find((some) => some.length > 0)
  if (found) return found.map(shown)
  const topic = topics.stored.get(name)
  if (topic) return [{ id: topic.id, ...(topic.institutionId && { owner: topic.institutionId }) }]
  return (await feed.titled(name)).map(shown)
}

/** A livestream, and when an event of it was accepted last. */
interface NewestEvent {
  /** ISO 8601. Null: it is not silent. */
  silentSince: string | null
  /** Whether the livestream plays in a loop with another. Times are ISO 8601. */
  loop: { since: string; lastAt: string; with: string } | null
  at: string | null
  eventTime: string | null
  livestream: { id: string; externalId: string | null; title: string | null; isListed: boolean }
  institution: { id: string | null; title: string | null }
}

/**
 * All livestreams of the feed, and others with retained events. Of each, the retained event that was accepted last.
 * Null: no event is retained, or the feed does not say.
 */
export async function newestEvents({
  broker,
  feed,
  topics,
  watch,
  silentSince,
}: Pick<NodeParts, 'broker' | 'feed' | 'topics' | 'watch' | 'silentSince'>): Promise<NewestEvent[]> {
  const last = lastRetained(broker.retained)
  const titles = new Map<string | null, string>()
  const listed: NewestEvent[] = []
  for await (const { id, externalId, title, institution } of feed.current()?.all() ?? []) {
    const value = last.get(id)
    last.delete(id)
    titles.set(institution.id, institution.title)
    listed.push({
      ...timesOf(value),
      silentSince: silentSince?.(id) ?? null,
      loop: loopShown(watch.loopOf(id)),
      livestream: { id, externalId, title, isListed: true },
      institution: { id: institution.id, title: institution.title },
    })
  }
  // The feed does not list the others, or lists them no more.
  const others = [...last].map(([id, value]) => {
    const former = feed.former?.byId.get(id)
    const owner = former?.institution.id ?? topics.stored.get(id)?.institutionId ?? null
    return {
      ...timesOf(value),
      silentSince: silentSince?.(id) ?? null,
      loop: loopShown(watch.loopOf(id)),
      livestream: {
        id,
        externalId: former?.externalId ?? null,
        title: former?.title ?? null,
        isListed: false,
      },
      institution: { id: owner, title: titles.get(owner) ?? former?.institution.title ?? null },
    }
  })
  return [...listed, ...others]
}

/** By livestream: of its retained values, the one that the hub accepted last. */
function lastRetained({ topics, current }: Broker['retained']): Map<string, RetainedValue> {
  const last = new Map<string, RetainedValue>()
  for (const topic of topics(radioTree)) {
    const [, id = ''] = topic.split('/')
    const value = current(topic)
    if (value && value.position > (last.get(id)?.position ?? -1)) last.set(id, value)
  }
  return last
}

function loopShown(mark: LoopMark | undefined): NewestEvent['loop'] {
  if (!mark) return null
  const iso = (time: number) => new Date(time).toISOString()
  return { since: iso(mark.since), lastAt: iso(mark.lastAt), with: mark.with }
}

/** When the hub accepted a value, and the event time of the value. ISO 8601. */
function timesOf(value: RetainedValue | undefined) {
  const iso = (time: number | undefined) => (time === undefined ? null : new Date(time).toISOString())
  return { at: iso(value?.at), eventTime: iso(value?.time) }
}

function shown({ id, externalId, institution }: Livestream) {
  return { id, externalId, owner: institution.id }
}
