import type { Calls } from '../store/nodes/calls.ts'
import type { PluginTarget } from './plugins/targets.ts'
import type { WorkQueues } from './queue/work-queues.ts'
import type { QueueRunState } from './queue-run.ts'
import type { PushSubscriptions } from './webhook/subscriptions.ts'

/** A queue as operators see it. */
export type ShownQueue = Awaited<ReturnType<ReturnType<typeof createQueueList>>>[number]

/** What only the node knows that works queues off. */
interface QueuesHere {
  states: [queue: string, state: QueueRunState][]
  dropped: [queue: string, items: number][]
}

/** Lists every queue as operators see it, those that nothing was ever in as well. */
export function createQueueList(parts: {
  calls: Calls
  queues: Pick<WorkQueues, 'names' | 'lengthOf' | 'dropped'>
  runner: { states(): QueuesHere['states']; stateOf(name: string): QueueRunState }
  pluginQueues: readonly { name: string; target: PluginTarget }[]
  subscriptions: Pick<PushSubscriptions, 'list' | 'find'>
  whyClosed: (queue: string) => string | undefined
}) {
  const { calls, queues, runner, pluginQueues, subscriptions, whyClosed } = parts
  calls.serve('queues', (): QueuesHere => ({ states: runner.states(), dropped: queues.dropped() }))

  return async () => {
    const others = (await calls.askOthers('queues', null)).map(([, theirs]) => theirs as QueuesHere)
    const elsewhere = new Map(others.flatMap(({ states }) => states))
    const dropped = new Map<string, number>()
    for (const [name, count] of [queues.dropped(), ...others.map((theirs) => theirs.dropped)].flat()) {
      dropped.set(name, (dropped.get(name) ?? 0) + count)
    }
    const targets = new Map<string, string | null>([
      ...pluginQueues.map(({ name, target }) => [name, target.url ?? target.driver ?? null] as const),
      ...subscriptions.list().map(({ name, url }) => [name, url] as const),
    ])
    for (const name of queues.names()) if (!targets.has(name)) targets.set(name, null)
    return [...targets].map(([name, target]) => {
      const { state, ...standing } = elsewhere.get(name) ?? runner.stateOf(name)
      const length = { ...queues.lengthOf(name), dropped: dropped.get(name) ?? 0 }
      const { contact = null, disabledAt = null, pausedAt = null } = subscriptions.find(name) ?? {}
      const shown = { name, target, contact, state: restingState(name, target) ?? state }
      return { ...shown, ...length, ...standing, disabledAt, pausedAt }
    })
  }

  /** Why nothing is sent from a queue, whatever its runner says; the reason that only operators can end comes first. */
  function restingState(name: string, target: string | null) {
    const { disabledAt, pausedAt, isBeginning } = subscriptions.find(name) ?? {}
    if (whyClosed(name) !== undefined) return 'closed' as const
    if (pausedAt !== undefined) return 'paused' as const
    if (disabledAt !== undefined) return 'disabled' as const
    if (isBeginning) return 'beginning' as const
    return target === null ? ('no target' as const) : undefined
  }
}
