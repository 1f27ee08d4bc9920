/** Counts the references to each position. The journal keeps a message as long as its position has one. */
export function createReferenceCounts() {
  const counts = new Map<number, number>()
  return {
    has: (position: number): boolean => counts.has(position),

    add(position: number): void {
      counts.set(position, (counts.get(position) ?? 0) + 1)
    },

    remove(position: number): void {
      const left = (counts.get(position) ?? 0) - 1
      if (left > 0) counts.set(position, left)
      else counts.delete(position)
    },
  }
}
