/**
 * A queue between those who bring values and one who takes them, bounded. When more than `limit` wait, a new value
 * replaces the older one of the same key: the newest of each key stays. When more than `most` wait all the same, the
 * oldest falls out. `next` tells how many fell out since it was last asked.
 */
export function createMessageQueue<T>({ limit = 1_000, most = 100_000 } = {}) {
  /** In order of arrival. */
  const waiting = new Map<number, { key: string; value: T }>()
  const newest = new Map<string, number>()
  let place = 0
  let dropped = 0
  let end: { error?: Error } | undefined
  const wakes = new Set<() => void>()

  return {
    push(key: string, value: T): void {
      if (end !== undefined) return
      if (waiting.size >= limit) drop(newest.get(key))
      if (waiting.size >= most) drop(waiting.keys().next().value)
      waiting.set(place, { key, value })
      newest.set(key, place++)
      wakeAll()
    },

    /** What waits is still taken; `next` then rejects with the error, or says that there is no more. */
    end(error?: Error): void {
      end ??= error === undefined ? {} : { error }
      wakeAll()
    },

    /** Undefined: the queue has ended. */
    async next(): Promise<{ value: T; dropped: number } | undefined> {
      for (;;) {
        const [first] = waiting
        if (first !== undefined) return take(...first)
        if (end?.error) throw end.error
        if (end) return undefined
        await new Promise<void>((resolve) => wakes.add(resolve))
      }
    },
  }

  function wakeAll(): void {
    for (const wake of wakes) wake()
    wakes.clear()
  }

  function take(at: number, { key, value }: { key: string; value: T }): { value: T; dropped: number } {
    waiting.delete(at)
    if (newest.get(key) === at) newest.delete(key)
    const taken = { value, dropped }
    dropped = 0
    return taken
  }

  function drop(at: number | undefined): void {
    const old = at === undefined ? undefined : waiting.get(at)
    if (at === undefined || old === undefined) return
    waiting.delete(at)
    if (newest.get(old.key) === at) newest.delete(old.key)
    dropped++
  }
}
