import type { Attempts } from '../attempts.ts'
import { mostPassedAtOnce } from '../queue/passed-over.ts'
import type { Waiting } from '../queue/queue.ts'
import type { WorkItem } from '../queue/work-item.ts'
import type { WorkQueues } from '../queue/work-queues.ts'
import type { Target } from '../target.ts'
import type { Next, QueueRun } from './queue-run.ts'

/** Whether an item is not worth delivering any more. */
export type IsStale = (item: WorkItem, target: Target) => boolean

/** The items of a queue, or of a lane of it, from which the next attempt is chosen. */
export type WaitingOf = (name: string, run: QueueRun) => Waiting & { isBlocked?: boolean }

/** Milliseconds until the time at which a target wants an item. */
export type WaitOf = (item: WorkItem, target: Target) => number

/**
 * Returns a function that removes all items of a queue which are not worth delivering any more, if the item of the next
 * attempt is one of them. Many are removed together, so that those of an outage of hours cost few commits. True: items
 * were removed, so the next attempt is with another item.
 */
export function createPassingOver(parts: {
  queues: Pick<WorkQueues, 'items' | 'passOver'>
  attempts: Pick<Attempts, 'pass' | 'forget'>
  isStale: IsStale
  /** Whether an attempt with an item is under way. */
  isUnderWay: (queue: string, item: WorkItem) => boolean
  clock: () => number
}) {
  const { queues, attempts, isStale, isUnderWay, clock } = parts

  return async (name: string, target: Target, { item, refusedHead }: Next): Promise<boolean> => {
    if (target.maxAge === undefined) return false
    if (!isStale(item, target) && !(refusedHead && isStale(refusedHead, target))) return false
    const stale = queues.items(name).filter((one) => isStale(one, target) && !isUnderWay(name, one))
    for (let from = 0; from < stale.length; from += mostPassedAtOnce) {
      await pass(name, stale.slice(from, from + mostPassedAtOnce))
    }
    return true
  }

  async function pass(name: string, stale: readonly WorkItem[]): Promise<void> {
    const time = new Date(clock()).toISOString()
    try {
      await queues.passOver(name, stale, (gone) =>
        attempts.pass(
          name,
          gone.map((item) => ({
            livestreamId: livestreamOf(item),
            messageId: item.messageId,
            at: item.enqueuedAt,
          })),
          time,
        ),
      )
    } catch (error) {
      // These items wait still, and will be counted again.
      attempts.forget(name)
      throw error
    }
  }
}

function livestreamOf({ details, element }: WorkItem): string | null {
  const [first] = Object.keys(element?.livestreams ?? {})
  const { livestreamId = first } = details
  return typeof livestreamId === 'string' ? livestreamId : null
}
