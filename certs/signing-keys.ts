import { randomUUID } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import { createCollection } from '../store/collection.ts'
import { createLock } from '../store/lock.ts'
import type { Store } from '../store/store.ts'

export type SigningKeys = Awaited<ReturnType<typeof createSigningKeys>>

/** A key as operators see it. */
interface SigningKeyView {
  kid: string
  createdAt: string
  /** When a newer key replaced this key, ISO 8601. Null: this key signs. */
  replacedAt: string | null
}

interface StoredKey extends SigningKeyView {
  privateJwk: JWK
  publicJwk: JWK
}

/** The only algorithm of tokens, whatever a header says (RFC 8725 §3.1). */
export const algorithm = 'RS256'

/**
 * The newest key signs tokens and pushes. A replaced key verifies for `keepMs` milliseconds more, until its last token
 * has expired. Private keys lie in the store.
 */
export async function createSigningKeys(parts: { store: Store; clock: () => number; keepMs: number }) {
  const { store, clock, keepMs } = parts
  const collection = await createCollection<StoredKey>(store, 'signing-key')
  const inLock = await createLock(store, 'signing-key')
  // Nodes that start together may each make a key: the newest key wins.
  let signing = newest() ?? (await makeFirst())

  return {
    /** The key that signs now. */
    current() {
      signing = newest() ?? signing
      return { kid: signing.kid, key: signing.privateJwk }
    },

    /**
     * The public key with this id, if it still verifies. Returns the same object each time: jose then imports the key
     * only once.
     */
    find(kid: string | undefined): JWK | undefined {
      const stored = kid === undefined ? undefined : collection.get(kid)
      return stored && isKept(stored) ? stored.publicJwk : undefined
    },

    /** The public keys, for receivers of pushes (RFC 7517). */
    jwks: () => ({ keys: [...collection.values()].filter(isKept).map(({ publicJwk }) => publicJwk) }),

    list: (): SigningKeyView[] =>
      [...collection.values()].filter(isKept).map(shown).sort(byCreation).reverse(),

    /**
     * Makes a new key, which signs from now on. `dropOld`: the hub refuses tokens of the other keys immediately. Before
     * the commit, `rotate` calls `first` with the id of the new key. If `first` rejects, nothing changes.
     */
    rotate: ({ dropOld = false, first }: Rotation = {}): Promise<SigningKeyView> =>
      inLock(async (held) => {
        const made = await make()
        await first?.(made.kid)
        const replacedAt = new Date(clock()).toISOString()
        const old = [...collection.values()]
        const dropped = old.filter((key) => dropOld || !isKept(key))
        const replaced = old.filter((key) => key.replacedAt === null && !dropped.includes(key))
        await collection.change(
          [
            [made.kid, made],
            ...dropped.map(({ kid }) => [kid, undefined] as const),
            ...replaced.map((key) => [key.kid, { ...key, replacedAt }] as const),
          ],
          held,
        )
        return shown(made)
      }),
  }

  function newest(): StoredKey | undefined {
    return [...collection.values()]
      .filter(({ replacedAt }) => replacedAt === null)
      .sort(byCreation)
      .at(-1)
  }

  async function makeFirst(): Promise<StoredKey> {
    const key = await make()
    await collection.put(key.kid, key)
    return key
  }

  async function make(): Promise<StoredKey> {
    const pair = await generateKeyPair(algorithm, { modulusLength: 2048, extractable: true })
    const kid = randomUUID()
    return {
      kid,
      createdAt: new Date(clock()).toISOString(),
      replacedAt: null,
      privateJwk: await exportJWK(pair.privateKey),
      publicJwk: { ...(await exportJWK(pair.publicKey)), kid, use: 'sig', alg: algorithm },
    }
  }

  function isKept({ replacedAt }: StoredKey): boolean {
    return replacedAt === null || Date.parse(replacedAt) + keepMs > clock()
  }
}

interface Rotation {
  dropOld?: boolean
  first?: (kid: string) => Promise<void>
}

function shown({ kid, createdAt, replacedAt }: StoredKey): SigningKeyView {
  return { kid, createdAt, replacedAt }
}

function byCreation(a: StoredKey | SigningKeyView, b: StoredKey | SigningKeyView): number {
  return a.createdAt + a.kid < b.createdAt + b.kid ? -1 : 1
}
