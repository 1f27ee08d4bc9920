import { type Principal, permissionKey } from '../../acl/principal.ts'
import { ConditionFailed, type Store } from '../../store/store.ts'
import { type CleanSession, isOfCleanSession } from '../session/clean-sessions.ts'
import type { KnownSessions } from '../session/known-sessions.ts'
import type { LocalSessions } from '../session/local-sessions.ts'
import type { Login, Returning } from '../session/returning.ts'
import type { Session } from '../session/session.ts'
import { type Records, recordKey } from '../session/session-record.ts'
import type { StoredSessions } from '../session/stored-sessions.ts'

export type Claims = ReturnType<typeof createClaims>

/** Maximum number of times that a log-in tries to claim its session. */
const maxTries = 5

/** A client that logs in. */
type LoggingIn = Omit<Login, 'permission'>

/**
 * Claims the session of a client that logs in: takes over the stored session, or makes a new one. A session belongs to
 * permissions (design.md §5): any principal with the same permissions can resume the session, and all others are
 * refused while the session exists. If two nodes claim a session at once, the store decides.
 */
export function createClaims(parts: {
  store: Pick<Store, 'catchUp'>
  known: KnownSessions
  local: LocalSessions
  records: Records
  stored: StoredSessions
  returning: Returning
  /** Ends the older connection of a client id. */
  takeOver: {
    any(clientId: string, principal: Principal): Promise<void>
    clean(clientId: string, principal: Principal): Promise<CleanSession | undefined>
  }
  maxPerCredential: number // maximum number of persistent sessions of one credential
}) {
  const { store, known, local, records, stored, returning, takeOver, maxPerCredential } = parts

  return {
    /**
     * Ends the older connection of a client id, and resumes its session or makes a new one. Rejects with an error class
     * of this file, or if the session is not stored.
     */
    async claim(login: LoggingIn): Promise<Session> {
      const { clientId, principal, connection } = login
      check(login)
      await takeOver.any(clientId, principal)
      /** A clean session of the client, which may have been at another node. */
      let replaced: CleanSession | undefined
      for (let tries = 1; ; tries++) {
        // Another node may have let this client id in meanwhile.
        check(login)
        try {
          const left = local.get(clientId)
          if (left?.state === 'leaving') await stored.store(left)
          if (connection.destroyed) throw new ClientGone()
          return await claimOnce(login, replaced)
        } catch (error) {
          if (!(error instanceof ConditionFailed) || tries >= maxTries) throw error
          if (isOfCleanSession(error, clientId)) replaced = await takeOver.clean(clientId, principal)
        } finally {
          // The store may have applied a commit without answering: then the record wrongly names this node.
          if (records.isOwn(known.get(clientId)) && !local.connected(clientId)) stored.repair(clientId)
        }
      }
    },

    admits,
    hasRoom,
    /** How many persistent sessions a credential has. */
    persistentOf: (username: string): number => known.persistentOf(username).size,
  }

  function check({ clientId, clean, principal }: LoggingIn): void {
    if (!admits(clientId, principal)) throw new PermissionsDiffer()
    if (!hasRoom(clientId, clean, principal)) throw new TooManySessions()
  }

  async function claimOnce(login: LoggingIn, replaced: CleanSession | undefined): Promise<Session> {
    const { clientId, clean, principal, connection } = login
    const before = known.get(clientId)
    const isResumed = before !== undefined && !clean && !known.hasExpired(before)
    const record = isResumed ? await records.read(clientId) : undefined
    if (isResumed && record?.version !== before.version) {
      // Another node has stored or removed the record. When the change has arrived here, `claim` tries again.
      await store.catchUp()
      throw new ConditionFailed(recordKey(clientId))
    }
    const permission = known.permission(permissionKey(principal))
    const session = returning.open({ ...login, permission }, record, local.storingIncoming.get(clientId))
    session.storedVersion = before?.version
    local.claim(session)
    try {
      const losses = record && (await returning.bringBack(session, record))
      const removed = before && !record ? await records.leftovers(clientId) : []
      try {
        await stored.claim(session, { before, replaced }, removed)
      } catch (error) {
        if (error instanceof ConditionFailed) throw error
        // After this error, the store may still apply the commit. The record would then name this node, although the
        // client is not here. So a resumed session counts as leaving, and `repair` stores that its client is offline.
        if (losses) returning.report(session, losses)
        if (record) local.leave(session)
        throw error
      }
      if (losses) returning.report(session, losses)
      connection.sessionPresent = record !== undefined
      return session
    } finally {
      if (session.state === 'claiming') local.remove(session)
    }
  }

  /** Whether a principal may use this client id now. */
  function admits(clientId: string, principal: Principal): boolean {
    const before = known.get(clientId)
    const here = local.connected(clientId)
    const session = here ?? before
    if (!session || session.permission === permissionKey(principal)) return true
    return !here && before !== undefined && known.hasExpired(before)
  }

  /**
   * Whether the credential has room for this persistent session. A session that comes from another credential also
   * needs room. Otherwise two credentials could pass sessions to each other without a limit. `foreseen`: number of
   * further sessions to count that do not exist yet.
   */
  function hasRoom(clientId: string, clean: boolean, { username }: Principal, foreseen = 0): boolean {
    const held = known.persistentOf(username)
    if (clean || held.has(clientId)) return true
    const claimed = [...local.claiming].filter(
      (session) => !session.clean && session.principal.username === username && !held.has(session.clientId),
    )
    const underway = claimed.length + foreseen
    if (held.size + underway < maxPerCredential) return true
    const isCurrent = (id: string) => {
      const session = known.get(id)
      return session !== undefined && !known.hasExpired(session)
    }
    return [...held].filter(isCurrent).length + underway < maxPerCredential
  }
}

/** Another node has logged in a client with this client id and other permissions. */
export class PermissionsDiffer extends Error {}

/** The connection was closed during its log-in. */
export class ClientGone extends Error {}

/** The credential has as many persistent sessions as it may have. */
export class TooManySessions extends Error {}
