/**
 * Calls `silent` when a client has sent nothing for one and a half times its keep alive of `seconds` [MQTT-3.1.2-24].
 * `lastHeard` returns the time at which the client was last heard (`performance.now()`), or undefined while the hub
 * does not read from the client. Returns a function that ends the watch.
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
