import { isNetwork } from '../config/formats.ts'
import { createCollection } from '../store/collection.ts'
import { storeKeys } from '../store/keys.ts'
import { createLock } from '../store/lock.ts'
import type { Store } from '../store/store.ts'
import { createNetworks } from './networks.ts'

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
  const listeners: (() => void)[] = []
  let networks = networksOf(stored.values())
  stored.onChanged(changed)

  return {
    /** Those in effect, the one that ends first before the others. */
    list: (): Ban[] => inEffect().sort((a, b) => (a.until < b.until ? -1 : 1)),

    /** Whether an address is banned. */
    hasAddress: (address: string): boolean =>
      networks.some(({ ban, covers }) => isInEffect(ban) && covers(address)),

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
        changed()
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
        changed()
        return found.length
      }),

    /** Calls back when a ban has come or gone, on this node or another one. */
    onChange: (listener: () => void): void => void listeners.push(listener),
  }

  function changed(): void {
    networks = networksOf(stored.values())
    for (const listener of listeners) listener()
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

function networksOf(bans: Iterable<Ban>) {
  return [...bans]
    .filter(({ kind, value }) => kind === 'address' && problemOfBan(kind, value) === undefined)
    .map((ban) => ({ ban, covers: createNetworks([ban.value]) }))
}

function keyOf({ kind, value }: Pick<Ban, 'kind' | 'value'>): string {
  return `${kind} ${value}`
}
