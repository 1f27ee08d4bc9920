/**
 * Calls `silent` after one and a half keep alives of `seconds` without a packet [MQTT-3.1.2-24]. `lastHeard`: a time of
 * `performance.now()`. Undefined: the hub does not read now. Returns a function that ends the watch.
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
