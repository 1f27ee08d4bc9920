import { type Origin, originOf } from '../../listener/origin.ts'
import { createCollection } from '../../store/collection.ts'
import { storeKeys } from '../../store/keys.ts'
import type { Store } from '../../store/store.ts'

export type Familiar = Awaited<ReturnType<typeof createFamiliar>>

/**
 * How well the address of a client is known.
 *
 * - `address`: some account has logged in from this address.
 * - `network`: some account has logged in from the same network, but none from this address.
 * - `strange`: no account has logged in from this network.
 */
export type Familiarity = 'address' | 'network' | 'strange'

/** Maximum number of stored addresses; the oldest are dropped. One account must not push out all others. */
const usualLimits = { all: 10_000, perAccount: 50 }
const dayMs = 86_400_000
/** An address without a log-in for this long is forgotten when the next address is stored. */
const keepMs = 90 * dayMs

/**
 * Stores the addresses from which accounts have logged in. `account` in all functions: a key without a space.
 *
 * Log-ins from networks that no account knows are served last (`of`). An account has separate limits for networks from
 * which this account has never logged in (`knows`). So attackers who guess passwords do not lock out the owners of the
 * accounts.
 */
export async function createFamiliar(parts: {
  store: Store
  clock: () => number
  limits?: typeof usualLimits
}) {
  const { store, clock, limits = usualLimits } = parts
  const collection = await createCollection<{ at: number }>(store, storeKeys.familiarPlace)
  /** Keys are `<account> <address>`, values the time of the last log-in; the oldest first. */
  const places = new Map<string, number>()
  /** Number of entries of `places` by address, network, account, and `<account> <network>`. */
  const counts = new Map<string, number>()
  for (const [key, { at }] of [...collection.entries()].sort(([, a], [, b]) => a.at - b.at)) show(key, at)
  collection.onChanged((key, _before, after) => (after ? show(key, after.at) : drop(key)))

  return {
    /** How well an origin is known, whichever account logged in from there. */
    of({ address, network }: Origin): Familiarity {
      if (counts.has(address)) return 'address'
      return counts.has(network) ? 'network' : 'strange'
    },

    /** Whether this account has logged in from that network. */
    knows: (account: string, { network }: Origin): boolean => counts.has(`${account} ${network}`),

    /** Stores a log-in of the account from this address, at most once a day. */
    async remember(account: string, { address }: Origin): Promise<void> {
      const key = `${account} ${address}`
      const now = clock()
      if (now - (places.get(key) ?? -Infinity) < dayMs) return
      await collection.put(key, { at: now })
      show(key, now)
      for (const old of surplus(account, now)) {
        drop(old)
        await collection.delete(old)
      }
    },
  }

  function* surplus(account: string, now: number): Generator<string> {
    if ((counts.get(account) ?? 0) > limits.perAccount) {
      for (const key of places.keys()) {
        if ((counts.get(account) ?? 0) <= limits.perAccount) break
        if (key.startsWith(`${account} `)) yield key
      }
    }
    for (const [key, at] of places) {
      if (places.size <= limits.all && now - at < keepMs) return
      yield key
    }
  }

  function show(key: string, at: number): void {
    if (!places.delete(key)) count(key, 1)
    places.set(key, at)
  }

  function drop(key: string): void {
    if (places.delete(key)) count(key, -1)
  }

  function count(key: string, change: number): void {
    const [account = '', place = ''] = key.split(' ')
    const { network } = originOf(place.replace(/\/64$/, ''))
    for (const counted of [place, network, account, `${account} ${network}`]) {
      const left = (counts.get(counted) ?? 0) + change
      if (left > 0) counts.set(counted, left)
      else counts.delete(counted)
    }
  }
}
