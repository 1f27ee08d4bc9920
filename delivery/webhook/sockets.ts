import { type Places, places } from '../queue/limits.ts'

/** Test messages at the same time: each holds a connection. */
const tests = 64
/** Connections of one client that are kept for the next message, or still read the rest of an answer; of each kind. */
const kept = 64
/** One client for webhooks, one for plugin targets, each with both kinds. */
const keptInAll = 4 * kept

/** Connections that all of this may take at once. */
export const maxSockets = places.healthy.total + places.failing.total + tests + keptInAll

export type Sockets = ReturnType<typeof socketsWithin>

/** What may go on at once with so many connections: the same in proportion where there are fewer than wanted. */
export function socketsWithin(allowed: number) {
  const share = Math.min(1, allowed / maxSockets)
  const part = (whole: number) => Math.max(2, Math.floor(whole * share))
  const partOf = ({ total, perEndpoint }: Places['healthy']) => ({
    total: part(total),
    perEndpoint: Math.min(perEndpoint, part(total)),
  })
  return {
    places: { healthy: partOf(places.healthy), failing: partOf(places.failing) },
    tests: part(tests),
    kept: part(kept),
  }
}
