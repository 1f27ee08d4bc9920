import type { WorkItem } from './queue/work-item.ts'
import type { Worth } from './worth/worth.ts'

/** So many lanes of a queue are delivered side by side (deliveries.md, "Lanes"). */
export const mostLanes = 8

/** The receiver of the items of a queue, and for how long and when it wants them. */
export interface Target extends Worth {
  /** Queues with the same endpoint share its limit of deliveries that run at once. */
  endpoint: string
  /** The institution or plugin target of the queue. Owners share the limits on deliveries. */
  owner: string
  /**
   * Different livestreams are delivered side by side, at most so many. Absent: the items go one by one, in their order.
   */
  lanes?: number
  /**
   * The operator's own driver delivers. An attempt may end its process, or even that of the hub. So the store has to
   * know of an attempt before it begins.
   */
  isOwnDriver?: boolean
  /** Tries once to deliver an item. Never rejects. Ends early, with any outcome, when `signal` aborts. */
  deliver(item: WorkItem, payload: Buffer, signal: AbortSignal): Promise<AttemptOutcome>
}

/** The failures of one owner do not slow down others at the same endpoint. */
export type OwnedEndpoint = Pick<Target, 'endpoint' | 'owner'>

/** The hub sends nothing from this queue any more, and gives up its items. */
interface Closed {
  /** Why the queue is closed. */
  closed: string
}

/**
 * The target of a queue. Undefined: the items have to wait at the moment. `gone`: the subscription was removed, so the
 * hub removes the queue.
 */
export type TargetOf = (queue: string) => Target | Closed | 'gone' | undefined

export function isClosed(target: ReturnType<TargetOf>): target is Closed {
  return typeof target === 'object' && 'closed' in target
}

/** The outcome of one attempt. */
export interface AttemptOutcome {
  /**
   * `refused`: the answer blames the message. `gone`: the endpoint wants no more messages. `failed`: other failures.
   */
  result: 'acknowledged' | 'refused' | 'failed' | 'gone'
  status: number | null
  /** Null: the message was acknowledged. */
  reason: string | null
  /** The endpoint asked for a pause of this length, milliseconds. */
  retryAfterMs?: number
}
