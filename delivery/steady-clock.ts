/**
 * A clock for the age of data, milliseconds since the epoch. If the system clock is set back, this clock goes back too. If
 * the system clock jumps ahead, also after it was set back, this clock does not jump. Otherwise data would expire too early.
 */
export function createSteadyClock(clock: () => number, elapsed: () => number = () => performance.now()) {
  let lead = clock() - elapsed()
  return (): number => {
    const passed = elapsed()
    lead = Math.min(lead, clock() - passed)
    return lead + passed
  }
}
