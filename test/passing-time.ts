/**
 * Lets time pass for nodes in the process of the test: their clock goes on, and what they look at every ten or thirty
 * seconds is looked at once a minute of it. Call it before a node starts.
 */
export function letTimePass() {
  const looks = new Map<NodeJS.Timeout, () => void>()
  const { setInterval, clearInterval } = globalThis
  const { now } = Date
  let aheadMs = 0
  Date.now = () => now() + aheadMs
  globalThis.setInterval = Object.assign((work: () => void, ms?: number) => {
    const timer = setInterval(work, ms)
    if (ms === 10_000 || ms === 30_000) looks.set(timer, work)
    return timer
  }, setInterval)
  globalThis.clearInterval = (timer) => {
    if (typeof timer === 'object' && timer !== null) looks.delete(timer)
    clearInterval(timer)
  }

  return {
    look,

    /** Lets minutes pass. */
    pass(minutes: number): void {
      for (let minute = 0; minute < minutes; minute++) {
        aheadMs += 60_000
        look()
      }
    },
  }

  /** Lets nodes look again, without time passing. */
  function look(): void {
    for (const each of [...looks.values()]) each()
  }
}
