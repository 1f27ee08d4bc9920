import { type Origin, originOf } from '../../listener/origin.ts'
import { createCollection } from '../../store/collection.ts'
import type { Store } from '../../store/store.ts'

export type Familiar = Awaited<ReturnType<typeof createFamiliar>>

/** How well a place is known: somebody has logged in from the address, from its network, or never. */
export type Familiarity = 'address' | 'network' | 'strange'

/** Addresses that are kept; the oldest go. */
const maxAddresses = 10_000
const dayMs = 86_400_000
/** Whoever has not been there for so long comes as a stranger. */
const keepMs = 90 * dayMs

/**
 * From where people have logged in, stored: what strangers do elsewhere must not keep them out. It says nothing
 * about accounts, so that nobody learns of one by being treated better.
 */
export async function createFamiliar(parts: { store: Store; clock: () => number; limit?: number }) {
  const { store, clock, limit = maxAddresses } = parts
  const collection = await createCollection<{ at: number }>(store, 'familiar-address')
  /** How many of its addresses are known. */
  const networks = new Map<string, number>()
  for (const [address] of collection.entries()) count(address, 1)
  collection.onChanged((address, before, after) => {
    if ((before === undefined) !== (after === undefined)) count(address, after ? 1 : -1)
  })

  return {
    of({ address, network }: Origin): Familiarity {
      const known = collection.get(address)
      if (known && clock() - known.at < keepMs) return 'address'
      return networks.has(network) ? 'network' : 'strange'
    },

    /** Somebody has logged in from there. Stored once a day. */
    async remember({ address }: Origin): Promise<void> {
      const known = collection.get(address)
      if (known && clock() - known.at < dayMs) return
      await collection.put(address, { at: clock() })
      if (!known) count(address, 1)
      await forget()
    },
  }

  async function forget(): Promise<void> {
    const oldest = [...collection.entries()].sort(([, a], [, b]) => a.at - b.at)
    const surplus = oldest.length - limit
    for (const [index, [address, { at }]] of oldest.entries()) {
      if (index >= surplus && clock() - at < keepMs) return
      if (await collection.delete(address)) count(address, -1)
    }
  }

  function count(address: string, change: number): void {
    const { network } = originOf(address.replace(/\/64$/, ''))
    const left = (networks.get(network) ?? 0) + change
    if (left > 0) networks.set(network, left)
    else networks.delete(network)
  }
}
