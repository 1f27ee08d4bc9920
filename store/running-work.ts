/**
 * Counts work that must end before something is closed. The caller that started the work handles its outcome. Work is
 * counted and not listed, because a set of promises would keep their results in memory.
 */
export function createRunningWork() {
  let running = 0
  let waiting: (() => void)[] = []

  return {
    add(work: Promise<unknown>): void {
      running++
      work.then(forget, forget)
    },
    /** Resolves when no work runs any more, including work that began meanwhile. */
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
