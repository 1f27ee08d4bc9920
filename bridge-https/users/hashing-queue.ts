import { createFairQueue } from '../../listener/fair-queue.ts'
import type { Familiarity } from './familiar.ts'

/** A client that waits for a password to be hashed. */
export interface Asker {
  /** Address it comes from. */
  from: string
  familiarity: Familiarity
}

interface Waiting {
  start(): void
  sendAway(): void
}

/** Ranks of clients, the best known first. */
const ranks: readonly Familiarity[] = ['address', 'network', 'strange']
/** So many passwords of the best known rank, then one of a lower rank: a new colleague gets in as well. */
const turnsInARow = 3

/**
 * Decides whose password is hashed next. Each rank has its own places, so strangers take none of the others'. Within a
 * rank, addresses take turns. If a rank is full, the address with the most waiting gives way to one with few.
 */
export function createHashingQueue(placesPerRank: number) {
  const queues = ranks.map(() => createFairQueue<Waiting>())
  let turns = 0

  return {
    /** False if there is no place: then nothing is queued. */
    add({ from, familiarity }: Asker, waiting: Waiting): boolean {
      const queue = queueOf(familiarity)
      if (queue.size() >= placesPerRank) {
        const busiest = queue.busiest() ?? from
        if (queue.sizeOf(busiest) <= queue.sizeOf(from) + 1) return false
        queue.takeLast(busiest)?.sendAway()
      }
      queue.add(from, waiting)
      return true
    },

    /** Takes out the next one that waits. */
    next(): Waiting | undefined {
      const [best, ...others] = queues.filter((queue) => queue.size() > 0)
      turns = others.length > 0 ? turns + 1 : 0
      const isTurnOfOther = turns > 0 && turns % (turnsInARow + 1) === 0
      const queue = isTurnOfOther ? others[(turns / (turnsInARow + 1)) % others.length] : best
      return queue?.next()
    },
  }

  function queueOf(familiarity: Familiarity) {
    const queue = queues[ranks.indexOf(familiarity)]
    if (!queue) throw new Error(`no rank ${familiarity}`)
    return queue
  }
}
