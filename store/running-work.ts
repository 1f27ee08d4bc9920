/**
 * Work that must be over before something is closed. Its outcome is the business of whoever started it. It is counted and
 * not listed: a set of promises would keep what they hold in memory.
 */
export function createRunningWork() {
  let running = 0
  let waiting: (() => void)[] = []

  return {
    add(work: Promise<unknown>): void {
      running++
      work.then(forget, forget)
    },
    /** Resolves when nothing runs any more, nor what began meanwhile. */
    async ended(): Promise<void> {
      while (running > 0) await new Promise<void>((resolve) => waiting.push(resolve))
    },
  }

  function forget(): void {
    if (--running > 0) return
    const all = waiting
    waiting = []
    for (const resolve of all) resolve()
  }
}
