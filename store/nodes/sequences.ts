import { maxNodes, type NumberedNode } from './nodes.ts'

/** Sequences that a node can make per millisecond without running ahead of its clock. */
const perNode = 64

export type Sequences = ReturnType<typeof createSequences>

/**
 * Makes sequences. A sequence is one number: milliseconds since the epoch, a counter and the node's slot. A new
 * sequence is greater than every sequence that this node has made or heard: docs/decisions, "Later entries sort
 * behind, whatever the clocks say".
 */
export function createSequences(clock: () => number, nodes: NumberedNode) {
  let last = 0
  return {
    next(): number {
      last = Math.max(last + 1, clock() * perNode)
      return last * maxNodes + nodes.slot()
    },
    /** Notes a sequence from elsewhere: `next` then returns only greater ones. */
    heard(sequence: number): void {
      last = Math.max(last, Math.floor(sequence / maxNodes))
    },
  }
}
