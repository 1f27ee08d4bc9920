interface Waiting<T> {
  key: string
  value: T
  bytes: number
}

/**
 * A queue between those who bring values and one who takes them, bounded. When more than `limit` wait, a new value
 * replaces the older one of the same key: the newest of each key stays. When more than `most` or `mostBytes` wait all the
 * same, the oldest fall out. `next` tells how many fell out since it was last asked.
 */
export function createMessageQueue<T>({ limit = 1_000, most = 100_000, mostBytes = 64 * 1024 * 1024 } = {}) {
  /** In order of arrival. */
  const waiting = new Map<number, Waiting<T>>()
  const newest = new Map<string, number>()
  let bytesWaiting = 0
  let place = 0
  let dropped = 0
  let end: { error?: Error } | undefined
  const wakes = new Set<() => void>()

  return {
    /** `bytes`: the size that the value counts with. */
    push(key: string, value: T, bytes: number): void {
      if (end !== undefined) return
      if (waiting.size >= limit) drop(newest.get(key))
      for (const oldest of waiting.keys()) {
        if (waiting.size < most && bytesWaiting + bytes <= mostBytes) break
        drop(oldest)
      }
      waiting.set(place, { key, value, bytes })
      newest.set(key, place++)
      bytesWaiting += bytes
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

  function take(at: number, one: Waiting<T>): { value: T; dropped: number } {
    remove(at, one)
    const taken = { value: one.value, dropped }
    dropped = 0
    return taken
  }

  function drop(at: number | undefined): void {
    const old = at === undefined ? undefined : waiting.get(at)
    if (at === undefined || old === undefined) return
    remove(at, old)
    dropped++
  }

  function remove(at: number, { key, bytes }: Waiting<T>): void {
    waiting.delete(at)
    if (newest.get(key) === at) newest.delete(key)
    bytesWaiting -= bytes
  }
}
