import { maxNodes } from './nodes.ts'

/** Sequences per millisecond: so many numbers for each of `maxNodes` nodes. */
const perNode = 64

/**
 * A maker of rising numbers that sort by time, across restarts and nearly so across nodes, and of which no
 * two nodes make the same: the milliseconds, a counter, and the slot of the node.
 * All are greater than `after`, should the clock have been set back.
 */
export function createSequences(clock: () => number, slot: () => number, after = 0): () => number {
  let last = Math.floor(after / maxNodes)
  return () => {
    last = Math.max(last + 1, clock() * perNode)
    return last * maxNodes + slot()
  }
}

/** When a sequence was made, milliseconds since the epoch. */
export function sequenceTime(sequence: number): number {
  return Math.floor(sequence / (perNode * maxNodes))
}
