import { mask } from '../config/mask.ts'
import type { Calls } from '../store/nodes/calls.ts'
import { inTurns } from '../telemetry/turns.ts'
import type { DriverState } from './plugins/driver-process.ts'
import type { PluginTarget } from './plugins/targets.ts'
import type { WorkQueues } from './queue/work-queues.ts'
import type { QueueRunState } from './runner/queue-run.ts'
import type { PushSender } from './webhook/push.ts'
import type { PushSubscriptions } from './webhook/subscriptions.ts'

/** A queue as operators see it. */
export type ShownQueue = Awaited<ReturnType<ReturnType<typeof createQueueList>['list']>>[number]

/** The sums over all queues. */
export interface QueueTotals {
  pending: number
  /**
   * When the oldest waiting item was put into its queue, or had its time, milliseconds since the epoch. Counts only queues from which
   * the hub sends at present, and `beginning` queues. Undefined: no item waits in these queues.
   */
  oldest: number | undefined
  deadLetters: number
  /** Push subscriptions that the hub has disabled. */
  disabled: number
  /** Queues from which the hub sends, and whose oldest item has waited too long (`behindMs`). */
  behind: number
}

/**
 * A queue is behind when its oldest item has waited for this long, milliseconds. A backlog that grows gets there, however
 * fast its endpoint is.
 */
const behindMs = 60_000

/** What each node tells the others: the states of its queues, and how many items it has dropped or passed over. */
interface QueuesHere {
  states: [queue: string, state: QueueRunState][]
  dropped: [queue: string, items: number][]
  stale: [queue: string, items: number][]
  drivers: DriverHere[]
}

/** A driver of the operator's own on one node. `isOwn`: this node works its queue off. */
interface DriverHere {
  queue: string
  isOwn: boolean
  state: DriverState
}

/** Lists all queues as operators see them, empty ones too, and adds them up. */
export function createQueueList(parts: {
  calls: Calls
  queues: Pick<WorkQueues, 'names' | 'lengthOf' | 'dropped' | 'stale'>
  runner: { states(): QueuesHere['states']; stateOf(name: string): QueueRunState }
  plugins: {
    queues: readonly { name: string; target: PluginTarget }[]
    states(): [queue: string, state: DriverState][]
  }
  /** Whether this node works off a queue. */
  isOwn: (queue: string) => boolean
  subscriptions: Pick<PushSubscriptions, 'list' | 'find'>
  push: Pick<PushSender, 'whyClosed'>
  /** How long after their acceptance the items of a queue are delivered, milliseconds. */
  delayOf: (queue: string) => number
  clock: () => number
}) {
  const { calls, queues, runner, plugins, isOwn, subscriptions, push, delayOf, clock } = parts
  const driversHere = () =>
    plugins.states().map(([queue, state]): DriverHere => ({ queue, isOwn: isOwn(queue), state }))
  calls.serve(
    'queues',
    (): QueuesHere => ({
      states: runner.states(),
      dropped: queues.dropped(),
      stale: queues.stale(),
      drivers: driversHere(),
    }),
  )

  return {
    async list() {
      const others = await calls.answersOfOthers<QueuesHere>('queues', null)
      const elsewhere = new Map(others.flatMap(({ states }) => states))
      const dropped = added([queues.dropped(), ...others.map((theirs) => theirs.dropped)])
      const stale = added([queues.stale(), ...others.map((theirs) => theirs.stale)])
      const drivers = [driversHere(), ...others.map((theirs) => theirs.drivers)].flat()
      return inTurns(targets(), ([name, target]) => {
        const { state, ...standing } = elsewhere.get(name) ?? runner.stateOf(name)
        const length = {
          ...queues.lengthOf(name),
          dropped: dropped.get(name) ?? 0,
          stale: stale.get(name) ?? 0,
        }
        const { contact = null, disabledAt = null, pausedAt = null } = subscriptions.find(name) ?? {}
        const driver = driverOf(drivers, name)
        const isDown = driver?.state === 'down'
        const lastReason = isDown ? (driver.lastEnd?.reason ?? null) : standing.lastReason
        const shown = {
          name,
          target,
          contact,
          state:
            restingState(name, target) ??
            (isDown
              ? ('driver down' as const)
              : isBehind(state, length.oldest, delayOf(name))
                ? ('behind' as const)
                : state),
        }
        return { ...shown, ...length, ...standing, lastReason, driver, disabledAt, pausedAt }
      })
    },

    /** Adds up all queues. Asks no other node, because all nodes have the same totals. */
    totals(): QueueTotals {
      const totals: QueueTotals = { pending: 0, oldest: undefined, deadLetters: 0, disabled: 0, behind: 0 }
      for (const [name, target] of targets()) {
        const { pending, deadLetters, oldest } = queues.lengthOf(name)
        totals.pending += pending
        totals.deadLetters += deadLetters
        // A `beginning` queue counts: operators must notice if the beginning takes too long.
        const isSending = [undefined, 'beginning'].includes(restingState(name, target))
        if (oldest === null || !isSending) continue
        const delayMs = delayOf(name)
        totals.oldest = Math.min(totals.oldest ?? clock(), Date.parse(oldest) + delayMs)
        if (isOld(oldest, delayMs)) totals.behind++
      }
      for (const { disabledAt } of subscriptions.list()) if (disabledAt !== undefined) totals.disabled++
      return totals
    },
  }

  /** A queue that is `retrying` says more than that it is behind. */
  function isBehind(state: QueueRunState['state'], oldest: string | null, delayMs: number): boolean {
    return state !== 'retrying' && oldest !== null && isOld(oldest, delayMs)
  }

  function isOld(oldest: string, delayMs: number): boolean {
    return clock() - Date.parse(oldest) > behindMs + delayMs
  }

  /** All queues, each with its target. Null: the target is gone. */
  function targets(): Map<string, string | null> {
    const found = new Map<string, string | null>([
      ...plugins.queues.map(({ name, target }) => [name, placeOf(target)] as const),
      ...subscriptions.list().map(({ name, url }) => [name, url] as const),
    ])
    for (const name of queues.names()) if (!found.has(name)) found.set(name, null)
    return found
  }

  /**
   * The state of a queue from which the hub sends nothing at present; else undefined. `paused` comes before `disabled`,
   * because only an operator can end a pause.
   */
  function restingState(name: string, target: string | null) {
    const { disabledAt, pausedAt, isBeginning } = subscriptions.find(name) ?? {}
    if (push.whyClosed(name) !== undefined) return 'closed' as const
    if (pausedAt !== undefined) return 'paused' as const
    if (disabledAt !== undefined) return 'disabled' as const
    if (isBeginning) return 'beginning' as const
    return target === null ? ('no target' as const) : undefined
  }
}

/** Where a plugin target gets its items, as operators are shown it: without the secrets of a URL, as `hubctl config` does. */
export function placeOf({ url, driver }: PluginTarget): string | null {
  return url === undefined ? (driver ?? null) : String(mask('url', url))
}

/** Adds up what the nodes have counted of each queue. */
function added(ofNodes: readonly QueuesHere['dropped'][]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const [name, count] of ofNodes.flat()) sums.set(name, (sums.get(name) ?? 0) + count)
  return sums
}

/** The driver of a queue as the node has it that works the queue off. `ends` of all nodes. Null: it is part of the hub. */
function driverOf(drivers: readonly DriverHere[], queue: string): DriverState | null {
  const all = drivers.filter((driver) => driver.queue === queue)
  const shown = all.find(({ isOwn }) => isOwn) ?? all[0]
  return shown ? { ...shown.state, ends: all.reduce((sum, { state }) => sum + state.ends, 0) } : null
}
