import type { Broker } from '../broker/broker.ts'
import type { Deliveries } from '../delivery/deliveries.ts'
import type { Calls } from '../store/nodes/calls.ts'
import type { Nodes } from '../store/nodes/nodes.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { FeedSource } from '../validator/feed/feed-source.ts'
import type { Topics } from '../validator/topics.ts'
import type { EventCommandParts } from './event-commands.ts'
import { createEventTrace } from './event-trace.ts'

/** What the parts of a node know of events, put together for the commands about them. */
export function createKnownEvents(parts: {
  broker: Pick<Broker, 'history' | 'retained'>
  metrics: Pick<Metrics, 'stages'>
  nodes: Nodes
  calls: Calls
  feed: FeedSource
  topics: Topics
  deliveries: Deliveries
}): EventCommandParts['events'] {
  const { broker, metrics, nodes, calls, feed, topics, deliveries } = parts
  return {
    history: broker.history,
    trace: createEventTrace({ stages: metrics.stages, nodes, calls }),
    deliveries: deliveries.ofEvent,
    isRetained: broker.retained.names,
    livestream(name) {
      const known = [feed.current(), feed.former]
      const found =
        known.map((livestreams) => livestreams?.byId(name)).find((one) => one !== undefined) ??
        known.flatMap((livestreams) => livestreams?.byExternalId(name) ?? [])[0]
      if (found) return { id: found.id, externalId: found.externalId, owner: found.institution.id }
      const topic = topics.get(name)
      return topic && { id: topic.id, ...(topic.institutionId && { owner: topic.institutionId }) }
    },
  }
}
