/**
 * A clock for data that expires, milliseconds since the epoch. If the system clock is set back, this clock follows. It
 * does not follow a jump ahead, because data would then expire too early.
 */
export function createSteadyClock(clock: () => number, elapsed: () => number = () => performance.now()) {
  const started = clock() - elapsed()
  return (): number => Math.min(clock(), started + elapsed())
}
