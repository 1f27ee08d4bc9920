/**
 * Counts promises that must settle before their owner closes. The caller of `add` must handle their errors. Keeping the
 * promises would keep their results in memory.
 */
export function createRunningWork() {
  let running = 0
  let waiting: (() => void)[] = []

  return {
    add(work: Promise<unknown>): void {
      begin()
      work.then(end, end)
    },
    /** For work that is no promise: the caller calls `end` once for each `begin`. */
    begin,
    end,
    /** Resolves when no work is running. Also waits for work that is added after the call. */
    async ended(): Promise<void> {
      while (running > 0) await new Promise<void>((resolve) => waiting.push(resolve))
    },
  }

  function begin(): void {
    running++
  }

  function end(): void {
    if (--running > 0) return
    const all = waiting
    waiting = []
    for (const resolve of all) resolve()
  }
}
