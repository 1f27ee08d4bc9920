import { maxNodes, type NumberedNode } from './nodes.ts'

/** Sequences reserved for each of `maxNodes` nodes per millisecond. */
const perNode = 64

export type Sequences = ReturnType<typeof createSequences>

/**
 * Rising numbers that sort by time. No two nodes make the same number, because it consists of the milliseconds, a
 * counter and the slot of the node. A new number sorts behind all that its node has heard of, even if the clocks of
 * two nodes disagree or one was set back (Lamport).
 */
export function createSequences(clock: () => number, nodes: NumberedNode) {
  let last = 0
  return {
    next(): number {
      last = Math.max(last + 1, clock() * perNode)
      return last * maxNodes + nodes.slot()
    },
    /** Notes a sequence that any node has made: all that are made from now on are greater. */
    heard(sequence: number): void {
      last = Math.max(last, Math.floor(sequence / maxNodes))
    },
  }
}

/** A sequence as part of a key. Sixteen digits hold every safe integer, so that keys sort as numbers. */
export function padded(sequence: number): string {
  return String(sequence).padStart(16, '0')
}

/** The difference between two sequences that are made `ms` milliseconds apart. */
export function sequencesIn(ms: number): number {
  return ms * perNode * maxNodes
}

/** The slot of the node that made a sequence. */
export function slotIn(sequence: number): number {
  return sequence % maxNodes
}

/** When a sequence was made, milliseconds since the epoch. */
export function sequenceTime(sequence: number): number {
  return Math.floor(sequence / sequencesIn(1))
}
