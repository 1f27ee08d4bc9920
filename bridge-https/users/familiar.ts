import { type Origin, originOf } from '../../listener/origin.ts'
import { createCollection } from '../../store/collection.ts'
import type { Store } from '../../store/store.ts'

export type Familiar = Awaited<ReturnType<typeof createFamiliar>>

/** How well a place is known: by a log-in from the address, by one from its network, or not at all. */
export type Familiarity = 'address' | 'network' | 'strange'

/** Most places that are stored; the oldest go. One account must not push out the places of all others. */
const usualLimits = { all: 10_000, perAccount: 50 }
const dayMs = 86_400_000
/** A place without a log-in for so long is forgotten with the next place that is stored. */
const keepMs = 90 * dayMs

/**
 * Stores the places from which accounts have logged in, so that failures of strangers elsewhere do not keep owners out.
 * An account is a key without a space.
 */
export async function createFamiliar(parts: {
  store: Store
  clock: () => number
  limits?: typeof usualLimits
}) {
  const { store, clock, limits = usualLimits } = parts
  const collection = await createCollection<{ at: number }>(store, 'familiar-place')
  /** When each account last logged in at each of its places, the oldest first. */
  const places = new Map<string, number>()
  /** Number of places of each address, network, account, and account in a network. */
  const counts = new Map<string, number>()
  for (const [key, { at }] of [...collection.entries()].sort(([, a], [, b]) => a.at - b.at)) show(key, at)
  collection.onChanged((key, _before, after) => (after ? show(key, after.at) : drop(key)))

  return {
    /** How well the place is known, whichever account logged in. */
    of({ address, network }: Origin): Familiarity {
      if (counts.has(address)) return 'address'
      return counts.has(network) ? 'network' : 'strange'
    },

    /** Whether this account has logged in from that network. */
    knows: (account: string, { network }: Origin): boolean => counts.has(`${account} ${network}`),

    /** Notes that the account has logged in from there, at most once a day. */
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
