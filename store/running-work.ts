/** Work that must be over before something is closed. Its outcome is the business of whoever started it. */
export function createRunningWork() {
  const running = new Set<Promise<void>>()
  return {
    add(work: Promise<unknown>): void {
      const over = work.then(
        () => {},
        () => {},
      )
      running.add(over)
      void over.then(() => running.delete(over))
    },
    /** Resolves when nothing runs any more, nor what began meanwhile. */
    async ended(): Promise<void> {
      while (running.size > 0) await Promise.all(running)
    },
  }
}
