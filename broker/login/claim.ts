import { type Principal, permissionKey } from '../../acl/principal.ts'
import { ConditionFailed } from '../../store/store.ts'
import type { MqttConnection } from '../connection/connection.ts'
import type { SessionsHere } from '../session/here.ts'
import type { KnownSessions } from '../session/known-sessions.ts'
import type { Returning } from '../session/returning.ts'
import type { Session } from '../session/session.ts'
import { type Records, recordKey } from '../session/session-record.ts'
import type { StoredSessions } from '../session/stored-sessions.ts'

export type Claims = ReturnType<typeof createClaims>

/** Most tries of one log-in. It tries again if another commit has changed the stored session in between. */
const maxTries = 5

/**
 * Finds or makes the session of a client that logs in. A session belongs to the permissions that it was made with
 * (design.md §5): another principal with the same permissions may resume it. While the session exists, a principal with
 * other permissions is refused. If two nodes want the session, the store decides which of them gets it.
 */
export function createClaims(parts: {
  known: KnownSessions
  here: SessionsHere
  records: Records
  stored: StoredSessions
  returning: Returning
  maxPerCredential: number // persistent ones
}) {
  const { known, here, records, stored, returning, maxPerCredential } = parts
  const { connected, claiming, leaving } = here

  return {
    /**
     * Resumes the session of a client, or makes a new one. Call it when no other connection owns the session, and
     * `admits` has said yes. Rejects when the session cannot be stored, or the credential has too many.
     */
    async claim(
      clientId: string,
      clean: boolean,
      principal: Principal,
      owner: MqttConnection,
    ): Promise<{ session: Session; resumed: boolean }> {
      for (let tries = 1; ; tries++) {
        // Another node may have let a client in by now.
        if (!admits(clientId, principal)) throw new ForeignSession()
        if (!hasRoom(clientId, clean, principal)) throw new TooManySessions()
        try {
          const left = leaving.get(clientId)
          if (left) await stored.store(left)
          if (owner.destroyed) throw new ClientGone()
          return await begin(clientId, clean, principal, owner)
        } catch (error) {
          if (!(error instanceof ConditionFailed) || tries >= maxTries) throw error
        } finally {
          if (claiming.get(clientId)?.owner === owner) claiming.delete(clientId)
          // A commit of this node that seemed to have failed may have been applied.
          if (records.isOwn(known.get(clientId)) && !connected.has(clientId)) stored.repair(clientId)
        }
      }
    },

    admits,
    hasRoom,
    /** How many persistent sessions a credential has. */
    persistentOf: (username: string): number => known.persistentOf(username).size,
  }

  async function begin(
    clientId: string,
    clean: boolean,
    principal: Principal,
    owner: MqttConnection,
  ): Promise<{ session: Session; resumed: boolean }> {
    const before = known.get(clientId)
    const isResumed = before !== undefined && !before.clean && !clean && !known.hasExpired(before)
    const record = isResumed ? await records.read(clientId) : undefined
    if (isResumed && record?.version !== before.version) {
      // Another node has stored or removed the record: this node tries again when it has heard of that.
      await stored.catchUp()
      throw new ConditionFailed(recordKey(clientId))
    }
    const permission = known.permission(permissionKey(principal))
    const login = { clientId, clean, permission, principal, owner }
    const session = returning.open(login, record, here.receiving.get(clientId))
    session.storedVersion = before?.version
    claiming.set(clientId, session)
    const noteLosses = record && (await returning.bringBack(session, record))
    const removed = before && !record ? await records.leftovers(clientId) : []
    try {
      await stored.claim(session, before, removed)
    } catch (error) {
      if (!(error instanceof ConditionFailed)) {
        // The store may still apply the commit. The record then names this node.
        noteLosses?.()
        if (record) here.leave(session)
      }
      throw error
    }
    noteLosses?.()
    return { session, resumed: record !== undefined }
  }

  /** Whether a principal may use this client id now. */
  function admits(clientId: string, principal: Principal): boolean {
    const before = known.get(clientId)
    const session = connected.get(clientId) ?? before
    if (!session || session.permission === permissionKey(principal)) return true
    return !connected.has(clientId) && before !== undefined && known.hasExpired(before)
  }

  /**
   * Whether the credential has room for this session. A session that it already has needs no room. A session of another
   * credential does: two credentials with the same permissions could otherwise pass on sessions without a bound.
   * `foreseen`: number of other sessions that are about to be made.
   */
  function hasRoom(clientId: string, clean: boolean, { username }: Principal, foreseen = 0): boolean {
    const held = known.persistentOf(username)
    if (clean || held.has(clientId)) return true
    const claimed = [...claiming.values()].filter(
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

/** Another node has let a client with other permissions in under this client id. */
export class ForeignSession extends Error {}

/** The client has closed the connection that logs in. It may have another session by now, on another node. */
export class ClientGone extends Error {}

/** The credential has as many persistent sessions as it may have. */
export class TooManySessions extends Error {}
