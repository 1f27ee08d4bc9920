/**
 * A clock for data that expires, milliseconds since the epoch. If the system clock jumps ahead, this clock does not
 * jump, so that nothing expires too early. If the system clock is set back, this clock follows.
 */
export function createSteadyClock(clock: () => number, elapsed: () => number = () => performance.now()) {
  const started = clock() - elapsed()
  return (): number => Math.min(clock(), started + elapsed())
}
