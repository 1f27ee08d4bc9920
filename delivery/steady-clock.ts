/**
 * A clock for data that expires, milliseconds since the epoch. A jump of the system clock ahead has no effect: data
 * would expire too early. If the system clock is set back, this clock follows.
 */
export function createSteadyClock(clock: () => number, elapsed: () => number = () => performance.now()) {
  const started = clock() - elapsed()
  return (): number => Math.min(clock(), started + elapsed())
}
