import { type Slots, slots } from '../queue/limits.ts'

/** Test messages at the same time: each holds a connection. */
const tests = 64
/** One client has at most this many idle connections, and as many that still read the rest of an answer. */
const kept = 64
/** Two clients, for webhooks and for plugin targets, with two kinds of connections each. */
const keptInAll = 4 * kept

/** Most connections to webhooks and plugin targets at once, idle ones included. */
export const maxSockets = slots.healthy.total + slots.failing.total + tests + keptInAll

export type Sockets = ReturnType<typeof socketsWithin>

/** Splits `allowed` connections among deliveries, tests and idle ones. Below `maxSockets`, each gets less. */
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
    kept: part(kept),
  }
}
