/**
 * A map of the entries that were set last: at least `limit` of them, and at most twice as many. It has two maps: when
 * `current` is full it becomes `former`, and the old `former` goes. In a single map, finding the oldest entry would mean
 * stepping over all deleted ones.
 */
export function createNewestMap<Value>(limit: number) {
  let current = new Map<string, Value>()
  let former = new Map<string, Value>()

  return {
    get: (key: string): Value | undefined => current.get(key) ?? former.get(key),
    set(key: string, value: Value): void {
      current.set(key, value)
      if (current.size < limit) return
      former = current
      current = new Map()
    },
    delete(key: string): void {
      current.delete(key)
      former.delete(key)
    },
    entries: (): [string, Value][] => [...new Map([...former, ...current])],
  }
}
