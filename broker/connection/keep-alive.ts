/**
 * Watches that a client is heard within one and a half times its keep alive [MQTT-3.1.2-24].
 * `lastHeard` is on the clock of `performance.now()`; undefined while the hub does not read. Returns the
 * function that stops the watch.
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
