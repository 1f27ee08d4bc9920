import type { Familiarity } from './familiar.ts'

/** Who waits for a password to be hashed. */
export interface Asker {
  /** Address it comes from. */
  from: string
  familiarity: Familiarity
}

interface Waiting {
  start(): void
  sendAway(): void
}

/** The better known first. */
const ranks: readonly Familiarity[] = ['address', 'network', 'strange']
/** So many turns go to the better known, then one to those who are less so: a new colleague gets in as well. */
const turnsInARow = 3

/**
 * Who is next to be hashed for. Places are kept by how well an asker is known: however many strangers wait, they
 * take none of the others. Within a rank addresses take turns, and one that waits with many gives way to one with few.
 */
export function createHashingQueue(placesPerRank: number) {
  const queues = ranks.map(() => new Map<string, Waiting[]>())
  let turns = 0

  return {
    /** False when there is no place; nothing is kept then. */
    add({ from, familiarity }: Asker, waiting: Waiting): boolean {
      const queue = queueOf(familiarity)
      const own = queue.get(from) ?? []
      if (lengthOf(queue) >= placesPerRank) {
        const [longest = []] = [...queue.values()].sort((a, b) => b.length - a.length)
        if (longest.length <= own.length + 1) return false
        longest.pop()?.sendAway()
      }
      own.push(waiting)
      queue.set(from, own)
      return true
    },

    /** Takes out who is next. */
    next(): Waiting | undefined {
      const [best, ...others] = queues.filter((queue) => queue.size > 0)
      turns = others.length > 0 ? turns + 1 : 0
      const isTurnOfOther = turns > 0 && turns % (turnsInARow + 1) === 0
      return takeFrom(isTurnOfOther ? others[(turns / (turnsInARow + 1)) % others.length] : best)
    },
  }

  function queueOf(familiarity: Familiarity): Map<string, Waiting[]> {
    const queue = queues[ranks.indexOf(familiarity)]
    if (!queue) throw new Error(`no rank ${familiarity}`)
    return queue
  }

  function takeFrom(queue: Map<string, Waiting[]> | undefined): Waiting | undefined {
    const [first] = queue ?? []
    if (!queue || !first) return undefined
    const [from, waiting] = first
    const next = waiting.shift()
    // Behind the others, if there is more to do for it.
    queue.delete(from)
    if (waiting.length > 0) queue.set(from, waiting)
    return next
  }

  function lengthOf(queue: Map<string, Waiting[]>): number {
    let sum = 0
    for (const { length } of queue.values()) sum += length
    return sum
  }
}
