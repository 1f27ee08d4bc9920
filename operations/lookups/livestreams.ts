import { radioTree } from '../../acl/access.ts'
import type { Broker } from '../../broker/broker.ts'
import type { RetainedValue } from '../../journal/retained-value.ts'
import type { Livestream } from '../../validator/feed/feed.ts'
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
}: Pick<NodeParts, 'broker' | 'feed' | 'topics' | 'watch' | 'silentSince'>) {
  const last = lastRetained(broker.retained)
  const titles = new Map<string | null, string>()
  const rows: ReturnType<typeof rowOf>[] = []
  for await (const { id, externalId, title, institution } of feed.current()?.all() ?? []) {
    titles.set(institution.id, institution.title)
    const livestream = { id, externalId, title, isListed: true }
    rows.push(rowOf(livestream, { id: institution.id, title: institution.title }))
    last.delete(id)
  }
  // The feed does not list the others, or lists them no more.
  for (const id of last.keys()) {
    const { externalId = null, title = null, institution } = feed.former.byId.get(id) ?? {}
    const owner = institution?.id ?? topics.stored.get(id)?.institutionId ?? null
    const ownerTitle = titles.get(owner) ?? institution?.title ?? null
    rows.push(rowOf({ id, externalId, title, isListed: false }, { id: owner, title: ownerTitle }))
  }
  return rows

  function rowOf(
    livestream: { id: string; externalId: string | null; title: string | null; isListed: boolean },
    institution: { id: string | null; title: string | null },
  ) {
    const value = last.get(livestream.id)
    const mark = watch.loopOf(livestream.id)
    return {
      at: value ? iso(value.at) : null,
      eventTime: value ? iso(value.time) : null,
      silentSince: silentSince?.(livestream.id) ?? null,
      loop: mark ? { since: iso(mark.since), lastAt: iso(mark.lastAt), with: mark.with } : null,
      livestream,
      institution,
    }
  }
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

function iso(time: number): string {
  return new Date(time).toISOString()
}

function shown({ id, externalId, institution }: Livestream) {
  return { id, externalId, owner: institution.id }
}
