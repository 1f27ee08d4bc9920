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
  const check = () => {
    const left = (lastHeard() ?? performance.now()) + limit - performance.now()
    if (left <= 0) silent(limit)
    else timer = setTimeout(check, left).unref()
  }
  let timer = setTimeout(check, limit).unref()
  return () => clearTimeout(timer)
}
