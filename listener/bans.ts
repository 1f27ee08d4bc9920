import { isNetwork } from '../config/formats.ts'
import { createCollection } from '../store/collection.ts'
import { storeKeys } from '../store/keys.ts'
import { createLock } from '../store/lock.ts'
import type { Store } from '../store/store.ts'
import { createNetwork, createNetworks, parseAddress } from './networks.ts'

export type Bans = Awaited<ReturnType<typeof createBans>>

/**
 * Who is banned: an IP address or network (`192.0.2.0/24`), the clients of a credential, or an MQTT client id. What a
 * client says of itself is its own choice, and only an address keeps everybody out.
 */
export const banKinds = ['address', 'user', 'client'] as const
export type BanKind = (typeof banKinds)[number]

/** A ban, which ends by itself. */
export interface Ban {
  kind: BanKind
  value: string
  reason: string
  /** ISO 8601. */
  since: string
  until: string
}

/** Each connection is compared with all banned networks. */
const mostBans = 1_000

/** The bans of all nodes (`hubctl bans`). */
export async function createBans(parts: { store: Store; clock: () => number }) {
  const { store, clock } = parts
  const stored = await createCollection<Ban>(store, storeKeys.ban)
  const inLock = await createLock(store, 'ban')
  const listeners: ((ban: Ban) => void)[] = []
  let ofAddresses = ofAddressesIn(stored.values())
  stored.onChanged((_key, _before, after) => changed(after))

  return {
    /** Those in effect, the one that ends first before the others. */
    list: (): Ban[] => inEffect().sort((a, b) => (a.until < b.until ? -1 : 1)),

    /** Whether an address is banned. */
    hasAddress(address: string): boolean {
      const parsed = parseAddress(address)
      return parsed !== undefined && ofAddresses.some(({ ban, covers }) => covers(parsed) && isInEffect(ban))
    },

    hasUser: (username: string): boolean => has('user', username),
    hasClient: (clientId: string): boolean => has('client', clientId),

    /** Bans in place of an earlier ban of the same. `first` is called before it is stored. */
    add: (ban: Ban, first: () => Promise<void>): Promise<'too many' | undefined> =>
      inLock(async (held) => {
        if (inEffect().filter((one) => keyOf(one) !== keyOf(ban)).length >= mostBans) return 'too many'
        await first()
        const over = [...stored.values()]
          .filter((one) => !isInEffect(one))
          .map((one) => [keyOf(one), undefined] as const)
        await stored.change([...over.filter(([key]) => key !== keyOf(ban)), [keyOf(ban), ban]], held)
        changed(ban)
        return undefined
      }),

    /** Removes all bans of a value, of whatever kind. Resolves with how many there were. */
    remove: (value: string, first: () => Promise<void>): Promise<number> =>
      inLock(async (held) => {
        const found = inEffect().filter((one) => one.value === value)
        if (found.length === 0) return 0
        await first()
        await stored.change(
          found.map((one) => [keyOf(one), undefined]),
          held,
        )
        changed(undefined)
        return found.length
      }),

    /** Calls `listener` with each ban that begins, on this node or another one. */
    onBanned: (listener: (ban: Ban) => void): void => void listeners.push(listener),
  }

  function changed(begun: Ban | undefined): void {
    ofAddresses = ofAddressesIn(stored.values())
    if (begun) for (const listener of listeners) listener(begun)
  }

  function inEffect(): Ban[] {
    return [...stored.values()].filter(isInEffect)
  }

  function isInEffect({ until }: Ban): boolean {
    return Date.parse(until) > clock()
  }

  function has(kind: BanKind, value: string): boolean {
    const found = stored.get(keyOf({ kind, value }))
    return found !== undefined && isInEffect(found)
  }
}

/** Why a value cannot be banned. Undefined: it can. */
export function problemOfBan(kind: BanKind, value: string): string | undefined {
  if (kind !== 'address' || isNetwork(value)) return undefined
  return 'value must be an IP address, or a network such as 192.0.2.0/24'
}

/** Whether a ban keeps an address out. */
export function createBanned(ban: Ban): (address: string) => boolean {
  return createNetworks(isOfAddress(ban) ? [ban.value] : [])
}

function ofAddressesIn(bans: Iterable<Ban>) {
  return [...bans].filter(isOfAddress).map((ban) => ({ ban, covers: createNetwork(ban.value) }))
}

function isOfAddress({ kind, value }: Ban): boolean {
  return kind === 'address' && isNetwork(value)
}

function keyOf({ kind, value }: Pick<Ban, 'kind' | 'value'>): string {
  return `${kind} ${value}`
}
