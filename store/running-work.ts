/** Work that must be over before something is closed. Its outcome is the business of whoever started it. */
export function createRunningWork() {
  const running = new Set<Promise<void>>()
  return {
    add(work: Promise<unknown>): void {
      const over = work.then(forget, forget)
      running.add(over)
      function forget(): void {
        running.delete(over)
      }
    },
    /** Resolves when nothing runs any more, nor what began meanwhile. */
    async ended(): Promise<void> {
      while (running.size > 0) await Promise.all(running)
    },
  }
}
