/**
 * A clock for what expires: where the system's jumps ahead this one goes on, where that is set back it follows.
 * Milliseconds since the epoch.
 */
export function createSteadyClock(clock: () => number, elapsed: () => number = () => performance.now()) {
  const started = clock() - elapsed()
  return (): number => Math.min(clock(), started + elapsed())
}
