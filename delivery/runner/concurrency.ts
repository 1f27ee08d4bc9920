/**
 * Limits the deliveries that run at once, in total and for each endpoint. An owner (institution or plugin target) with
 * slow endpoints does not block other owners.
 */
export function createConcurrency(limits: { total: number; perEndpoint: number }) {
  const whole = createSlots(limits.total)
  const endpoints = new Map<string, ReturnType<typeof createSlots>>()

  return {
    /** Resolves when a slot is free. Call the returned function exactly once, to give the slot back. */
    async enter(endpoint: string, owner: string): Promise<() => void> {
      const own = endpoints.get(endpoint) ?? createSlots(limits.perEndpoint)
      endpoints.set(endpoint, own)
      await own.take(owner)
      await whole.take(owner)
      return () => {
        whole.give(owner)
        own.give(owner)
        if (own.isIdle() && endpoints.get(endpoint) === own) endpoints.delete(endpoint)
      }
    },
  }
}

/**
 * Slots that owners share. An owner gets another slot only if it holds fewer slots than are free. So some slots stay
 * free for new owners: docs/decisions, "An institution runs fewer deliveries than are free".
 */
function createSlots(size: number) {
  let free = size
  const held = new Map<string, number>()
  /** Waiting calls of `take` by owner. An owner that gets a slot moves to the end. */
  const waiting = new Map<string, (() => void)[]>()

  return {
    take(owner: string): Promise<void> {
      if (mayTake(owner)) {
        hold(owner)
        return Promise.resolve()
      }
      return new Promise((resolve) => {
        const others = waiting.get(owner)
        if (others) others.push(resolve)
        else waiting.set(owner, [resolve])
      })
    },

    give(owner: string): void {
      const left = (held.get(owner) ?? 0) - 1
      if (left > 0) held.set(owner, left)
      else held.delete(owner)
      free++
      serve()
    },

    isIdle: () => free === size && waiting.size === 0,
  }

  function mayTake(owner: string): boolean {
    return (held.get(owner) ?? 0) < free
  }

  function hold(owner: string): void {
    held.set(owner, (held.get(owner) ?? 0) + 1)
    free--
  }

  /** Gives slots to waiting owners until none of them may take one. */
  function serve(): void {
    for (;;) {
      const next = firstServed()
      if (!next) return
      const { owner, calls } = next
      const proceed = calls.shift()
      waiting.delete(owner)
      if (calls.length > 0) waiting.set(owner, calls)
      hold(owner)
      proceed?.()
    }
  }

  function firstServed(): { owner: string; calls: (() => void)[] } | undefined {
    if (free === 0) return undefined
    for (const [owner, calls] of waiting) if (mayTake(owner)) return { owner, calls }
    return undefined
  }
}
