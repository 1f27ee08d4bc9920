/**
 * A clock for things that expire. When the system clock jumps ahead, this one goes on as before. When the system clock
 * is set back, this one follows. Milliseconds since the epoch.
 */
export function createSteadyClock(clock: () => number, elapsed: () => number = () => performance.now()) {
  const started = clock() - elapsed()
  return (): number => Math.min(clock(), started + elapsed())
}
