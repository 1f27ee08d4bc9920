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

/**
 * Maximum number of tries of one log-in to claim its session. A try fails if another commit changes the stored session.
 */
const maxTries = 5

/**
 * Claims the session of a client that logs in: this node takes over the stored session, or makes a new one. A session
 * belongs to the permissions that it was made with (design.md §5): another principal with the same permissions may
 * resume it. While the session exists, a principal with other permissions is refused. If two nodes claim a session at
 * the same time, the store decides which of them gets it.
 */
export function createClaims(parts: {
  known: KnownSessions
  here: SessionsHere
  records: Records
  stored: StoredSessions
  returning: Returning
  maxPerCredential: number // maximum number of persistent sessions of one credential
}) {
  const { known, here, records, stored, returning, maxPerCredential } = parts
  const { connected, claiming, leaving } = here

  return {
    /**
     * Resumes the session of a client, or makes a new one. Call it only after `admits` has returned true, and while no
     * other connection owns the session. Rejects with one of the errors below, or if the session cannot be stored.
     */
    async claim(
      clientId: string,
      clean: boolean,
      principal: Principal,
      owner: MqttConnection,
    ): Promise<{ session: Session; resumed: boolean }> {
      for (let tries = 1; ; tries++) {
        // Another node may have logged in a client with this client id since the caller asked.
        if (!admits(clientId, principal)) throw new ForeignSession()
        if (!hasRoom(clientId, clean, principal)) throw new TooManySessions()
        try {
          const left = leaving.get(clientId)
          if (left) await stored.store(left)
          if (owner.destroyed) throw new ClientGone()
          return await claimOnce(clientId, clean, principal, owner)
        } catch (error) {
          if (!(error instanceof ConditionFailed) || tries >= maxTries) throw error
        } finally {
          if (claiming.get(clientId)?.owner === owner) claiming.delete(clientId)
          // If the record names this node, but the client is not connected here, the store may have applied a commit
          // of this node without answering.
          if (records.isOwn(known.get(clientId)) && !connected.has(clientId)) stored.repair(clientId)
        }
      }
    },

    admits,
    hasRoom,
    /** How many persistent sessions a credential has. */
    persistentOf: (username: string): number => known.persistentOf(username).size,
  }

  async function claimOnce(
    clientId: string,
    clean: boolean,
    principal: Principal,
    owner: MqttConnection,
  ): Promise<{ session: Session; resumed: boolean }> {
    const before = known.get(clientId)
    const isResumed = before !== undefined && !before.clean && !clean && !known.hasExpired(before)
    const record = isResumed ? await records.read(clientId) : undefined
    if (isResumed && record?.version !== before.version) {
      // Another node has stored or removed the record. When the change has arrived here, `claim` tries again.
      await stored.catchUp()
      throw new ConditionFailed(recordKey(clientId))
    }
    const permission = known.permission(permissionKey(principal))
    const login = { clientId, clean, permission, principal, owner }
    const session = returning.open(login, record, here.storingIncoming.get(clientId))
    session.storedVersion = before?.version
    claiming.set(clientId, session)
    const noteLosses = record && (await returning.bringBack(session, record))
    const removed = before && !record ? await records.leftovers(clientId) : []
    try {
      await stored.claim(session, before, removed)
    } catch (error) {
      if (!(error instanceof ConditionFailed)) {
        // The store may still apply the commit. The record would then name this node, although the client is not
        // connected. Keep the session as one whose client has gone: `repair` then stores that the client is offline.
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
   * Whether the credential may have this session beside its other persistent sessions. A session that the credential
   * already has needs no room. A session of another credential needs room, or else two credentials with the
   * same permissions could pass sessions to each other without a limit. `foreseen`: number of other sessions
   * that are about to be made.
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

/** Another node has logged in a client with this client id and other permissions. */
export class ForeignSession extends Error {}

/** The connection was closed during its log-in. The client may have logged in on another node by now. */
export class ClientGone extends Error {}

/** The credential has as many persistent sessions as it may have. */
export class TooManySessions extends Error {}
