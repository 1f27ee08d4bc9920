import { createCollection } from '../../store/collection.ts'
import { storeKeys } from '../../store/keys.ts'
import { createLock } from '../../store/lock.ts'
import type { Store } from '../../store/store.ts'
import { hashOfToken, isSameSecret, newToken } from './passwords.ts'
import { normalEmail } from './user.ts'

export type InstitutionContacts = Awaited<ReturnType<typeof createInstitutionContacts>>

/** The contact of an institution. It gets mails only while it is confirmed. */
export interface InstitutionContact {
  institutionId: string
  email: string
  state: 'unconfirmed' | 'confirmed' | 'unsubscribed'
  /** ISO 8601. */
  setAt: string
}

interface StoredContact {
  institutionId: string
  email: string
  setAt: string
  /** The secret of the link that ends the mails. It stands in each of them. */
  unsubscribe: string
  /** The link that confirms the address: its hash, and until when it works. */
  confirm?: { hash: string; until: string }
  confirmedAt?: string
  unsubscribedAt?: string
}

/** A contact that was set, with the token of the link that confirms it. */
export interface UnconfirmedContact {
  contact: InstitutionContact
  token: string
  expiresAt: string
}

type First = (contact: InstitutionContact) => Promise<void>

const confirmMs = 72 * 3600 * 1000

/**
 * The address to which each institution gets mails (open.md §7). Whoever reads the mails of the address confirms it by a
 * link before the hub mails anything else there, and ends the mails by a link in each of them.
 */
export async function createInstitutionContacts(parts: { store: Store; clock: () => number }) {
  const { store, clock } = parts
  const stored = await createCollection<StoredContact>(store, storeKeys.institutionContact)
  const inLock = await createLock(store, 'institution-contact')

  return {
    /** Sorted by institution. */
    list: (): InstitutionContact[] =>
      [...stored.values()].map(shown).sort((a, b) => (a.institutionId < b.institutionId ? -1 : 1)),

    /** The institutions whose contact gets mails. */
    confirmed: (): string[] =>
      [...stored.values()]
        .filter((one) => stateOf(one) === 'confirmed')
        .map(({ institutionId }) => institutionId),

    /** Where to mail, if the institution has a contact that gets mails. `condition` holds in the store while it does. */
    recipient(institutionId: string) {
      const found = stored.get(institutionId)
      if (!found || stateOf(found) !== 'confirmed') return undefined
      const { email, unsubscribe, setAt } = found
      return { email, unsubscribe, setAt, condition: stored.unchanged(institutionId) }
    },

    /** Sets the contact of an institution, in place of a former one. It is not confirmed yet. */
    set: (institutionId: string, email: string): Promise<UnconfirmedContact> =>
      inLock(async (held) => {
        const token = newToken()
        const expiresAt = new Date(clock() + confirmMs).toISOString()
        const contact: StoredContact = {
          institutionId,
          email: normalEmail(email),
          setAt: new Date(clock()).toISOString(),
          unsubscribe: newToken(),
          confirm: { hash: hashOfToken(token), until: expiresAt },
        }
        await stored.put(institutionId, contact, held)
        return { contact: shown(contact), token, expiresAt }
      }),

    /** False: the institution has no contact. */
    remove: (institutionId: string): Promise<boolean> => inLock((held) => stored.delete(institutionId, held)),

    /** Confirms the contact of this link, once or again. False: the link is not valid. `first`: as of `changeOf`. */
    confirm: (token: string, first: First): Promise<boolean> =>
      changeOf(
        () => byConfirm(hashOfToken(token)),
        (found, now) => (found.confirmedAt === undefined ? { ...found, confirmedAt: now } : undefined),
        first,
      ),

    /** Ends the mails to the contact of this link, once or again. False: the link is not valid. */
    unsubscribe: (token: string, first: First): Promise<boolean> =>
      changeOf(
        () => byUnsubscribe(token),
        ({ confirm: _ends, ...found }, now) =>
          found.unsubscribedAt === undefined ? { ...found, unsubscribedAt: now } : undefined,
        first,
      ),
  }

  /**
   * Changes the contact of a link. `change` returns undefined if it has been changed before. `first` is called with what
   * it becomes, before that is stored.
   */
  async function changeOf(
    find: () => StoredContact | undefined,
    change: (found: StoredContact, now: string) => StoredContact | undefined,
    first: First,
  ): Promise<boolean> {
    // Strangers ask: without a contact there is no lock to take.
    if (!find()) return false
    return inLock(async (held) => {
      const found = find()
      const changed = found && change(found, new Date(clock()).toISOString())
      if (changed) {
        await first(shown(changed))
        await stored.put(changed.institutionId, changed, held)
      }
      return found !== undefined
    })
  }

  function byConfirm(hash: string): StoredContact | undefined {
    const found = [...stored.values()].find(({ confirm }) => confirm?.hash === hash)
    return found?.confirm && Date.parse(found.confirm.until) > clock() ? found : undefined
  }

  /** The first characters find the contact, all others decide. */
  function byUnsubscribe(token: string): StoredContact | undefined {
    const name = token.slice(0, 8)
    const found = [...stored.values()].find(({ unsubscribe }) => unsubscribe.startsWith(name))
    return found && isSameSecret(found.unsubscribe, token) ? found : undefined
  }
}

function shown(stored: StoredContact): InstitutionContact {
  const { institutionId, email, setAt } = stored
  return { institutionId, email, state: stateOf(stored), setAt }
}

function stateOf({ confirmedAt, unsubscribedAt }: StoredContact): InstitutionContact['state'] {
  if (unsubscribedAt !== undefined) return 'unsubscribed'
  return confirmedAt === undefined ? 'unconfirmed' : 'confirmed'
}
