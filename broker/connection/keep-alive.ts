/**
 * Calls `silent` when the hub has heard nothing for one and a half keep alives [MQTT-3.1.2-24]. `seconds`: one keep
 * alive; 0: no watch. Returns a function that ends the watch.
 *
 * `lastHeard` returns the time at which the hub last heard something (`performance.now()`). Undefined: the hub does not
 * read now, so the silence does not count.
 */
export function watchKeepAlive(
  seconds: number,
  lastHeard: () => number | undefined,
  silent: (limitMs: number) => void,
): () => void {
  const limit = seconds * 1500
  if (limit === 0) return () => {}
  let timer: NodeJS.Timeout
  let turn: NodeJS.Immediate | undefined
  wait(limit)
  return () => {
    clearTimeout(timer)
    clearImmediate(turn)
  }

  /** Looks after `ms` milliseconds. In `setImmediate`, what came during a pause of this node has been read. */
  function wait(ms: number): void {
    timer = setTimeout(() => {
      const now = performance.now()
      turn = setImmediate(() => check(now))
    }, ms).unref()
  }

  function check(now: number): void {
    const left = (lastHeard() ?? now) + limit - now
    if (left <= 0) silent(limit)
    else wait(left)
  }
}
