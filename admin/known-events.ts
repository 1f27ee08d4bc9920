import type { Broker } from '../broker/broker.ts'
import type { Deliveries } from '../delivery/deliveries.ts'
import type { Calls } from '../store/nodes/calls.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Livestream } from '../validator/feed/feed.ts'
import type { FeedSource } from '../validator/feed/feed-source.ts'
import type { Topics } from '../validator/topics.ts'
import type { EventCommandParts } from './event-commands.ts'
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
    institutions: () => [
      ...new Set([...(feed.current()?.all() ?? [])].map(({ institution }) => institution.id)),
    ],
    newest: () => {
      const { retained } = broker
      return [...(feed.current()?.all() ?? [])].map(({ id, externalId, title, institution }) => {
        const topics = retained.topics(`radio/${id}/#`)
        const times = topics.map((topic) => retained.current(topic)?.time ?? -Infinity)
        const newest = Math.max(...times)
        const eventTime = newest === -Infinity ? null : new Date(newest).toISOString()
        const livestream = { id, externalId, title }
        return { eventTime, livestream, institution: { id: institution.id, title: institution.title } }
      })
    },
    livestreams(name) {
      const known = [feed.current(), feed.former]
      const direct = known.map((livestreams) => livestreams?.byId.get(name)).find((one) => one !== undefined)
      if (direct) return [shown(direct)]
      const external = known.map((livestreams) => livestreams?.byExternalId.get(name) ?? [])
      const found = external.find((some) => some.length > 0)
      if (found) return found.map(shown)
      const topic = topics.stored.get(name)
      if (topic) return [{ id: topic.id, ...(topic.institutionId && { owner: topic.institutionId }) }]
      return feed.titled(name).map(shown)
    },
  }
}

function shown({ id, externalId, institution }: Livestream) {
  return { id, externalId, owner: institution.id }
}
