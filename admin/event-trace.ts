import type { Calls } from '../store/nodes/calls.ts'
import type { Nodes } from '../store/nodes/nodes.ts'
import { type EventStages, type Stages, slowestOf } from '../telemetry/stages.ts'

/** What one node remembers of an event. */
interface NodeTrace {
  node: string
  /** Connected clients that it was written to; null: too long ago, or before the node was started. */
  recipients: number | null
  /** Only of the node that accepted it. */
  stages: EventStages | null
}

/** What nodes remember of events: best effort, gone when a node ends. */
export function createEventTrace({ stages, nodes, calls }: { stages: Stages; nodes: Nodes; calls: Calls }) {
  calls.serve('event-trace', (args) => here(readAsked(args)))
  calls.serve('events-slow', () => slowHere())

  return {
    /** What each living node remembers of the event with this id and the messages at these positions. */
    async of(asked: { id: string | null; positions: readonly number[] }): Promise<NodeTrace[]> {
      const others = await calls.askOthers('event-trace', asked)
      return [here(asked), ...others.map(([, trace]) => trace as NodeTrace)]
    },

    /** The slowest events of the last hour over all nodes. */
    async slowest(): Promise<(EventStages & { node: string })[]> {
      const others = await calls.askOthers('events-slow', null)
      return slowestOf(
        [slowHere(), ...others.map(([, events]) => events as ReturnType<typeof slowHere>)].flat(),
      )
    },
  }

  function here({ id, positions }: { id: string | null; positions: readonly number[] }): NodeTrace {
    const known = positions.flatMap((position) => stages.recipientsOf(position) ?? [])
    return {
      node: nodes.name,
      recipients: known.length > 0 ? known.reduce((sum, count) => sum + count) : null,
      stages: (id !== null && stages.of(id)) || null,
    }
  }

  function slowHere() {
    return stages.slowest(Date.now()).map((event) => ({ ...event, node: nodes.name }))
  }
}

function readAsked(args: unknown): { id: string | null; positions: number[] } {
  const { id, positions } = Object(args)
  return {
    id: typeof id === 'string' ? id : null,
    positions: Array.isArray(positions) ? positions.map(Number) : [],
  }
}
