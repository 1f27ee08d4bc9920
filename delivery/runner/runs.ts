import { livestreamsOf, shareLivestream } from '../queue/lane-of.ts'
import type { WorkItem } from '../queue/work-item.ts'
import { createQueueRun, type QueueRun } from './queue-run.ts'

/** In place of a lane: the queue as a whole. */
export const whole = ''

export type Runs = ReturnType<typeof createRuns>

/** The runs of all queues: one for each queue, or for each of its lanes. */
export function createRuns() {
  const byQueue = new Map<string, Map<string, QueueRun>>()
  let waits = 0

  return {
    queues: (): string[] => [...byQueue.keys()],

    of,

    /** The run of a lane, made if there is none. */
    get(name: string, lane: string): QueueRun {
      const lanes = byQueue.get(name) ?? new Map<string, QueueRun>()
      const run = lanes.get(lane) ?? createQueueRun(lane)
      lanes.set(lane, run)
      byQueue.set(name, lanes)
      return run
    },

    /** The run of a lane, for reading only. */
    peek: (name: string, lane: string): QueueRun => byQueue.get(name)?.get(lane) ?? createQueueRun(lane),

    forget(name: string, run: QueueRun): void {
      const lanes = byQueue.get(name)
      if (lanes?.get(run.lane) === run) lanes.delete(run.lane)
      if (lanes?.size === 0) byQueue.delete(name)
    },

    /** Whether an attempt with the item is under way. */
    isUnderWay: (name: string, { sequence }: Pick<WorkItem, 'sequence'>): boolean =>
      of(name).some(({ current }) => current?.sequence === sequence),

    /** Whether a delivery of the queue is under way, or about to begin. */
    isBusy: (name: string): boolean => of(name).some(({ chosen }) => chosen !== undefined),

    /**
     * Begins with an item. False: the lane has to wait, because `most` lanes of the queue are under way, or one of them
     * with an item for one of its livestreams.
     */
    begin(name: string, run: QueueRun, item: WorkItem, most: number | undefined): boolean {
      const others = of(name).flatMap((other) => (other !== run && other.chosen ? [other.chosen] : []))
      const isFree =
        most === undefined ||
        (others.length < most &&
          !others.some((other) => shareLivestream(livestreamsOf(other), livestreamsOf(item))))
      if (isFree) {
        run.waitingSince = undefined
        run.chosen = item
      } else wait(run)
      return isFree
    },

    wait,
  }

  function of(name: string): QueueRun[] {
    return [...(byQueue.get(name)?.values() ?? [])]
  }

  /** Notes that a lane waits for others. */
  function wait(run: QueueRun): void {
    run.waitingSince ??= ++waits
  }
}
