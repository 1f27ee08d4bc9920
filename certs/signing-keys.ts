import { randomUUID } from 'node:crypto'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import { keySetMaxAge } from '../config/key-set.ts'
import { createCollection } from '../store/collection.ts'
import { storeKeys } from '../store/keys.ts'
import { createLock } from '../store/lock.ts'
import type { Store } from '../store/store.ts'

export type SigningKeys = Awaited<ReturnType<typeof createSigningKeys>>

/** A key as operators see it. */
interface SigningKeyView {
  kid: string
  /** When the key was made, and entered the key set. ISO 8601. */
  createdAt: string
  /** From when the key signs, ISO 8601. */
  signsFrom: string
  /** When a newer key took its place, ISO 8601. Null: it signs, or its time has not come. */
  replacedAt: string | null
  state: 'waiting' | 'signing' | 'replaced'
}

interface StoredKey {
  kid: string
  createdAt: string
  /** Keys of 3.0.0-beta.1 have none: they signed from `createdAt` on. */
  signsFrom?: string
  privateJwk: JWK
  publicJwk: JWK
}

/** The only algorithm of tokens, whatever a header says (RFC 8725 §3.1). */
export const algorithm = 'RS256'

/**
 * The keys that sign tokens and pushes, in the order in which they sign. A new key is in the key set at once and signs
 * `leadMs` milliseconds later, because receivers keep key sets (design.md §10). Which key signs follows from the stored
 * keys and the clock alone: nothing has to happen when the time comes, on any node. A replaced key verifies for `keepMs`
 * milliseconds more, until its last token has expired. Private keys lie in the store.
 */
export async function createSigningKeys(parts: {
  store: Store
  clock: () => number
  keepMs: number
  leadMs: number
}) {
  const { store, clock, keepMs, leadMs } = parts
  const collection = await createCollection<StoredKey>(store, storeKeys.signingKey)
  const inLock = await createLock(store, 'signing-key')
  // Nodes that start together may each make a key: both are in the key set, and the newer one signs.
  let signing = signingKey() ?? (await makeFirst())

  return {
    /** The key that signs now. */
    current() {
      signing = signingKey() ?? signing
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
    jwks: () => ({
      keys: inOrder()
        .filter(isKept)
        .map(({ publicJwk }) => publicJwk),
    }),

    /** How long receivers may keep the key set, seconds. */
    maxAge: keySetMaxAge,

    /** All keys of the key set, the newest first. */
    list: (): SigningKeyView[] => inOrder().filter(isKept).map(shown).reverse(),

    /**
     * Makes a new key, which signs after the lead, and after each key that waits already. `dropOld`: it signs at once,
     * and the hub refuses tokens of the other keys immediately. Before the commit, `rotate` calls `first` with the new
     * key. If `first` rejects, nothing changes.
     */
    rotate: ({ dropOld = false, first }: Rotation = {}): Promise<SigningKeyView> =>
      inLock(async (held) => {
        const old = inOrder()
        // A key that another node made can wait beyond the lead, where the clocks of the nodes differ.
        const earliest = dropOld ? clock() : Math.max(clock() + leadMs, ...old.map((key) => startOf(key) + 1))
        const made = await make(earliest)
        await first?.({ kid: made.kid, signsFrom: made.signsFrom })
        const dropped = old.filter((key) => dropOld || !isKept(key))
        await collection.change(
          [[made.kid, made], ...dropped.map(({ kid }) => [kid, undefined] as const)],
          held,
        )
        return shown(made)
      }),
  }

  /** The last key whose time has come. A hub's first key signs whatever the clock of this node says. */
  function signingKey(): StoredKey | undefined {
    const keys = inOrder()
    return keys.findLast((key) => startOf(key) <= clock()) ?? keys[0]
  }

  function inOrder(): StoredKey[] {
    return [...collection.values()].sort(
      (a, b) => startOf(a) - startOf(b) || (a.createdAt + a.kid < b.createdAt + b.kid ? -1 : 1),
    )
  }

  async function makeFirst(): Promise<StoredKey> {
    const key = await make(clock())
    await collection.put(key.kid, key)
    return key
  }

  async function make(signsFrom: number): Promise<StoredKey & { signsFrom: string }> {
    const pair = await generateKeyPair(algorithm, { modulusLength: 2048, extractable: true })
    const kid = randomUUID()
    return {
      kid,
      createdAt: new Date(clock()).toISOString(),
      signsFrom: new Date(signsFrom).toISOString(),
      privateJwk: await exportJWK(pair.privateKey),
      publicJwk: { ...(await exportJWK(pair.publicKey)), kid, use: 'sig', alg: algorithm },
    }
  }

  /** When the key after this key begins to sign, milliseconds. Undefined: there is none. */
  function endOf(key: StoredKey): number | undefined {
    const keys = inOrder()
    const next = keys[keys.indexOf(key) + 1]
    return next && startOf(next)
  }

  function isKept(key: StoredKey): boolean {
    const end = endOf(key)
    return end === undefined || end + keepMs > clock()
  }

  function shown(key: StoredKey): SigningKeyView {
    const { kid, createdAt } = key
    const end = endOf(key)
    const isReplaced = end !== undefined && end <= clock()
    const isSigning = signingKey()?.kid === kid
    return {
      kid,
      createdAt,
      signsFrom: new Date(startOf(key)).toISOString(),
      replacedAt: isReplaced && !isSigning ? new Date(end).toISOString() : null,
      state: isSigning ? 'signing' : isReplaced ? 'replaced' : 'waiting',
    }
  }
}

interface Rotation {
  dropOld?: boolean
  first?: (made: { kid: string; signsFrom: string }) => Promise<void>
}

/** From when the key signs, milliseconds. */
function startOf({ signsFrom, createdAt }: StoredKey): number {
  return Date.parse(signsFrom ?? createdAt)
}
