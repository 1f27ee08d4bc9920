/**
 * A clock for data that expires, milliseconds since the epoch. If the system clock is set back, this clock goes back
 * too. If the system clock jumps ahead, this clock does not jump. Otherwise data would expire too early.
 */
export function createSteadyClock(clock: () => number, elapsed: () => number = () => performance.now()) {
  const started = clock() - elapsed()
  return (): number => Math.min(clock(), started + elapsed())
}
