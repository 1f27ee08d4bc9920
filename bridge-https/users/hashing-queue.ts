import { createFairQueue } from '../../listener/fair-queue.ts'
import type { Familiarity } from './familiar.ts'

/** A client that waits for a password to be hashed. */
export interface HashingAsker {
  /** Address of the client. */
  from: string
  familiarity: Familiarity
}

interface WaitingHash {
  start(): void
  sendAway(): void
}

/** Ranks of clients, the best known first. */
const ranks: readonly Familiarity[] = ['address', 'network', 'strange']
/** After this many passwords of the best known clients, a less known client gets a turn. */
const servedInARow = 3

/**
 * Decides whose password is hashed next. Each rank has its own queue, which serves addresses alternately.
 *
 * In a full queue, a new client replaces the last client of the busiest address, which has the most clients there. But
 * if the new client's address has as many clients there, or only one fewer, the new client is refused.
 */
export function createHashingQueue(placesPerRank: number) {
  const queues = ranks.map(() => createFairQueue<WaitingHash>())
  let served = 0

  return {
    /** Queues a client. False: the queue is full, and the client is not queued. */
    add({ from, familiarity }: HashingAsker, waiting: WaitingHash): boolean {
      const queue = queueOf(familiarity)
      if (queue.size() >= placesPerRank) {
        const busiest = queue.busiest() ?? from
        if (queue.sizeOf(busiest) <= queue.sizeOf(from) + 1) return false
        queue.takeLast(busiest)?.sendAway()
      }
      queue.add(from, waiting)
      return true
    },

    /** Takes out the waiting client that is served next. */
    next(): WaitingHash | undefined {
      const [best, ...others] = queues.filter((queue) => queue.size() > 0)
      served = others.length > 0 ? served + 1 : 0
      const isForOther = served > 0 && served % (servedInARow + 1) === 0
      const queue = isForOther ? others[(served / (servedInARow + 1)) % others.length] : best
      return queue?.next()
    },
  }

  function queueOf(familiarity: Familiarity) {
    const queue = queues[ranks.indexOf(familiarity)]
    if (!queue) throw new Error(`no rank ${familiarity}`)
    return queue
  }
}
