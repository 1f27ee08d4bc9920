import { radioTree } from '../acl/access.ts'
import type { Broker } from '../broker/broker.ts'
import type { Deliveries } from '../delivery/deliveries.ts'
import type { RetainedValue } from '../journal/retained-value.ts'
import type { Calls } from '../store/nodes/calls.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Livestream } from '../validator/feed/feed.ts'
import type { FeedSource } from '../validator/feed/feed-source.ts'
import type { Topics } from '../validator/topics.ts'
import type { EventCommandParts, NewestEvent } from './event-commands.ts'
import { createEventTrace } from './event-trace.ts'

/** The parts of a node that the commands about events use. */
export function createKnownEvents(parts: {
  broker: Pick<Broker, 'history' | 'retained'>
  metrics: Pick<Metrics, 'latency'>
  /** Name of this node. */
  node: string
  calls: Calls
  feed: FeedSource
  topics: Topics
  deliveries: Deliveries
}): EventCommandParts['events'] {
  const { broker, metrics, node, calls, feed, topics, deliveries } = parts
  return {
    history: broker.history,
    trace: createEventTrace({ latency: metrics.latency, node, calls }),
    deliveries: deliveries.ofEvent,
    isRetained: (topic, position) => broker.retained.current(topic)?.position === position,
    institutions: () => feed.current()?.institutions() ?? [],
    async newest() {
      const last = lastRetained(broker.retained)
      const titles = new Map<string | null, string>()
      const listed: NewestEvent[] = []
      for await (const { id, externalId, title, institution } of feed.current()?.all() ?? []) {
        const value = last.get(id)
        last.delete(id)
        titles.set(institution.id, institution.title)
        listed.push({
          ...timesOf(value),
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
          livestream: {
            ...{ id, externalId: former?.externalId ?? null, title: former?.title ?? null },
            isListed: false,
          },
          institution: { id: owner, title: titles.get(owner) ?? former?.institution.title ?? null },
        }
      })
      return [...listed, ...others]
    },
    async livestreams(name) {
      const known = [feed.current(), feed.former]
      const direct = known.map((livestreams) => livestreams?.byId.get(name)).find((one) => one !== undefined)
      if (direct) return [shown(direct)]
      const external = known.map((livestreams) => livestreams?.byExternalId.get(name) ?? [])
      const found = external.find((some) => some.length > 0)
      if (found) return found.map(shown)
      const topic = topics.stored.get(name)
      if (topic) return [{ id: topic.id, ...(topic.institutionId && { owner: topic.institutionId }) }]
      return (await feed.titled(name)).map(shown)
    },
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

/** When the hub accepted a value, and the event time of the value. ISO 8601. */
function timesOf(value: RetainedValue | undefined) {
  const iso = (time: number | undefined) => (time === undefined ? null : new Date(time).toISOString())
  return { at: iso(value?.at), eventTime: iso(value?.time) }
}

function shown({ id, externalId, institution }: Livestream) {
  return { id, externalId, owner: institution.id }
}
