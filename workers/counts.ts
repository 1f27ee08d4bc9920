import type { Count } from '../listener/shared-counts.ts'

/** Adds up what workers count, and tells each what the others count. */
export function createCounts(tell: (number: number, changes: Count[]) => void) {
  /** The counts of each worker, by its number. */
  const counts = new Map<number, Map<string, number>>()

  return {
    /** A worker starts, with this number. Returns what the others count. */
    begin(number: number): Count[] {
      counts.set(number, new Map())
      return [...counts].flatMap(([other, each]) => (other === number ? [] : [...each]))
    },

    add(number: number, changes: Count[]): void {
      const own = counts.get(number)
      if (!own) return
      for (const [key, by] of changes) {
        const count = (own.get(key) ?? 0) + by
        if (count === 0) own.delete(key)
        else own.set(key, count)
      }
      tellOthers(number, changes)
    },

    /** A worker has ended: it counts nothing any more. */
    end(number: number): void {
      const own = counts.get(number) ?? new Map<string, number>()
      counts.delete(number)
      tellOthers(
        number,
        [...own].map(([key, count]) => [key, -count]),
      )
    },
  }

  function tellOthers(number: number, changes: Count[]): void {
    if (changes.length === 0) return
    for (const other of counts.keys()) if (other !== number) tell(other, changes)
  }
}
