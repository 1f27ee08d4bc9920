/**
 * Sets the clock of this process ahead of the machine's by `aheadMs` milliseconds, now and whenever `set` is called.
 * Timers do not notice.
 */
export function moveClock(aheadMs: number) {
  const machine = Date
  let ahead = aheadMs
  const now = () => machine.now() + ahead
  globalThis.Date = new Proxy(machine, {
    construct: (target, given) => Reflect.construct(target, given.length > 0 ? given : [now()]),
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  })
  return {
    set(aheadMs: number): void {
      ahead = aheadMs
    },
  }
}
