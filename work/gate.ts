/**
 * Bounds what runs at the same time, in total and for each endpoint. Who finds it full waits in the order of
 * arrival, and an endpoint that is full keeps nobody else waiting.
 */
export function createGate(limits: { total: number; perEndpoint: number }) {
  const whole = createSemaphore(limits.total)
  const endpoints = new Map<string, ReturnType<typeof createSemaphore>>()

  return {
    /** Resolves when there is room; then `leave` must be called once. */
    async enter(endpoint: string): Promise<() => void> {
      const own = endpoints.get(endpoint) ?? createSemaphore(limits.perEndpoint)
      endpoints.set(endpoint, own)
      await own.take()
      await whole.take()
      return () => {
        whole.give()
        own.give()
        if (own.isIdle() && endpoints.get(endpoint) === own) endpoints.delete(endpoint)
      }
    },
  }
}

function createSemaphore(size: number) {
  let taken = 0
  const waiting: (() => void)[] = []
  return {
    take(): Promise<void> {
      if (taken < size) {
        taken++
        return Promise.resolve()
      }
      return new Promise((resolve) => waiting.push(resolve))
    },
    /** Whoever waits longest takes over the place. */
    give(): void {
      const next = waiting.shift()
      if (next) next()
      else taken--
    },
    isIdle: () => taken === 0,
  }
}
