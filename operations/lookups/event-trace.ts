import type { Calls } from '../../store/nodes/calls.ts'
import { type EventStages, type Latency, slowestOf } from '../../telemetry/latency.ts'

/** What one node remembers of an event. */
interface NodeTrace {
  node: string
  /** How many clients the node wrote the event to. Null: the node does not remember. */
  recipients: number | null
  /** Null if another node accepted the event. */
  stages: EventStages | null
}

/** Asks all nodes what they remember of events. Nodes that do not answer are left out. */
export function createEventTrace(parts: { latency: Latency; nodeName: string; calls: Calls }) {
  const { latency, nodeName: node, calls } = parts
  calls.serve('event-trace', (positions) => here(Array.isArray(positions) ? positions.map(Number) : []))
  calls.serve('events-slow', () => slowHere())

  return {
    /** What each living node remembers of the event whose messages lie at these positions. */
    async of(positions: readonly number[]): Promise<NodeTrace[]> {
      return [here(positions), ...(await calls.answersOfOthers<NodeTrace>('event-trace', positions))]
    },

    /** The slowest events of the last hour of all nodes together. */
    async slowest(): Promise<(EventStages & { node: string })[]> {
      const others = await calls.answersOfOthers<ReturnType<typeof slowHere>>('events-slow', null)
      return slowestOf([slowHere(), ...others].flat())
    },
  }

  function here(positions: readonly number[]): NodeTrace {
    const known = positions.flatMap((position) => latency.recipientsOf(position) ?? [])
    return {
      node,
      recipients: known.length > 0 ? known.reduce((sum, count) => sum + count) : null,
      stages: latency.of(Math.min(...positions)) ?? null,
    }
  }

  function slowHere() {
    return latency.slowest(Date.now()).map((event) => ({ ...event, node }))
  }
}
