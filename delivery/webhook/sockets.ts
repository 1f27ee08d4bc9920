import { type Slots, slots } from '../queue/limits.ts'

/** Maximum number of test messages under way at once. Each holds a connection. */
const tests = 64
/**
 * Maximum number of idle connections of one HTTP client: as many as an owner that delivers alone has under way. So the
 * next event of a livestream with many webhooks needs no new TLS handshakes. Also the maximum number of the client's
 * connections that still get the rest of an answer.
 */
const maxIdle = slots.healthy.total / 2
/**
 * There are two clients: one for webhooks, one for plugin targets. Each can have `maxIdle` idle connections, and
 * `maxIdle` further connections that still get the rest of an answer.
 */
const maxIdleInAll = 4 * maxIdle

/** Maximum number of connections to webhooks and plugin targets at once, idle ones included. */
export const maxSockets = slots.healthy.total + slots.failing.total + tests + maxIdleInAll

export type Sockets = ReturnType<typeof socketsWithin>

/**
 * Splits `allowed` connections among deliveries, tests and idle connections. If `allowed` is less than `maxSockets`,
 * each part is smaller, but at least 2.
 */
export function socketsWithin(allowed: number) {
  const share = Math.min(1, allowed / maxSockets)
  const part = (whole: number) => Math.max(2, Math.floor(whole * share))
  const partOf = ({ total, perEndpoint }: Slots['healthy']) => ({
    total: part(total),
    perEndpoint: Math.min(perEndpoint, part(total)),
  })
  return {
    slots: { healthy: partOf(slots.healthy), failing: partOf(slots.failing) },
    tests: part(tests),
    kept: part(maxIdle),
  }
}
