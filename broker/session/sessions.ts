import { type Principal, permissionKey } from '../../acl/principal.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import type { Sequences } from '../../store/nodes/sequences.ts'
import { type Change, ConditionFailed, type Store } from '../../store/store.ts'
import type { MqttConnection } from '../connection/connection.ts'
import type { Routes } from '../fanout/distribution.ts'
import type { Outbox } from '../queue/outbox.ts'
import type { HubTime } from './hub-time.ts'
import { createOwed } from './owed.ts'
import { createRecordCommits, eachOf } from './record-commits.ts'
import {
  ClientGone,
  createSession,
  detach,
  ForeignSession,
  isElsewhere,
  type Session,
  TooManySessions,
} from './session.ts'
import { createSessionExpiry } from './session-expiry.ts'
import { loadSessions } from './session-loading.ts'
import { createSessionMemory } from './session-memory.ts'
import {
  attemptRemoval,
  isReused,
  readRecord,
  recordChanges,
  recordKey,
  type SessionRecord,
} from './session-store.ts'

export type Sessions = Awaited<ReturnType<typeof openSessions>>

/** How often a log-in or a removal looks again because the session was stored in between. */
const maxTries = 5

/**
 * All sessions: of connected clients, and of offline ones that asked to be remembered.
 *
 * A session belongs to the permissions it was made with (design.md §5): another principal with the same
 * permissions may resume it, anybody else is refused while it exists. Memory changes first; what the store refuses,
 * because another node was first, is read from there again.
 */
export async function openSessions(parts: {
  store: Store
  outbox: Outbox
  routes: Routes
  nodes: Nodes
  sequences: Sequences
  clock: () => number
  hubTime: HubTime
  /** Offline sessions are forgotten after this time, milliseconds. */
  expiryMs: number
  maxPerCredential: number // persistent ones
  mayHave: (session: Session, filter: string) => boolean
}) {
  const { store, outbox, nodes, sequences, clock, maxPerCredential } = parts
  const sessions = createSessionMemory(parts)
  const { isStored, remove } = sessions
  const expiry = createSessionExpiry(parts)
  const storeRecord = createRecordCommits(commitRecord)
  /** Their log-in is on its way into the store: it decides who has them. */
  const claiming = new Set<Session>()
  const owed = createOwed(settle)
  await loadSessions({ store, outbox, nodes, adopt, now: clock(), get: sessions.get })

  return {
    get: sessions.get,
    values: sessions.values,
    /** How many persistent sessions a credential has. */
    persistentOf: (username: string): number => sessions.persistentOf(username).size,
    expiresAt: expiry.expiresAt,

    admits,
    hasRoom,

    /**
     * The session of a client that logs in: resumed, or new. Nobody else may own it at this moment, and
     * `admits` has said yes. Rejects when it cannot be stored, or the credential has too many.
     */
    async claim(
      clientId: string,
      clean: boolean,
      principal: Principal,
      owner: MqttConnection,
    ): Promise<{ session: Session; resumed: boolean }> {
      for (let tries = 1; ; tries++) {
        if (owner.destroyed) throw new ClientGone()
        // Another node may have let somebody in meanwhile.
        if (!admits(clientId, principal)) throw new ForeignSession()
        if (!hasRoom(clientId, clean, principal)) throw new TooManySessions()
        const existing = sessions.get(clientId)
        try {
          if (!existing || !isResumed(existing, clean)) return await begin(clientId, clean, principal, owner)
          return await resume(existing, principal, owner)
        } catch (error) {
          if (!(error instanceof ConditionFailed) || tries >= maxTries) throw error
        }
      }
    },

    /** Grants a filter in memory; `storeSubscriptions` makes it last. */
    subscribe: sessions.subscribe,
    unsubscribe: sessions.unsubscribe,

    /** Stores what a persistent session is subscribed to now. */
    async storeSubscriptions(session: Session): Promise<void> {
      if (!session.clean) await storeRecord(session)
    },

    /** The connection is gone: a clean session ends [MQTT-3.1.2-6], another waits for its client. */
    async release(session: Session, owner: MqttConnection): Promise<void> {
      if (session.owner !== owner) return
      detach(session)
      expiry.goOffline(session)
      if (!sessions.isCurrent(session)) return
      if (session.clean) await commitRemoval(session, remove(session))
      else await storeRecord(session)
    },

    /** Forgets a session and everything queued for it. The caller closes its connection. */
    async drop(session: Session): Promise<void> {
      for (let tries = 1, current: Session | undefined = session; current; tries++) {
        try {
          return await commitRemoval(current, remove(current))
        } catch (error) {
          if (!(error instanceof ConditionFailed) || tries >= maxTries) throw error
          // Its record was stored meanwhile, so the session is back. Who has logged in with it by now keeps it.
          current = sessions.get(session.clientId)
          if (current?.owner || (current?.node ?? nodes.self) !== nodes.self) throw error
        }
      }
    },

    adopt,
    adoptFilters: sessions.adoptFilters,
    forget: sessions.forget,

    isClaiming: (session: Session): boolean => claiming.has(session),

    /** Logs in again who is connected here: the others took this node for dead, and their sessions for offline. */
    async claimAgain(all: readonly Session[]): Promise<void> {
      const held = all.filter((session) => session.owner && isStored(session))
      await eachOf(held, async (session) => {
        session.node = nodes.self
        await storeRecord(session)
      })
    },

    /** Ends the connections of nodes that are gone. */
    async releaseGone(): Promise<void> {
      const isLeft = ({ node, owner }: Session) => node !== undefined && !owner && !nodes.isLiving(node)
      await eachOf([...sessions.values()].filter(isLeft), async (session) => {
        expiry.goOffline(session)
        if (!nodes.isLeader()) return
        if (session.clean) await commitRemoval(session, remove(session))
        else await storeRecord(session)
      })
    },

    /** Forgets sessions that have been offline for too long. Returns how many. */
    async sweep(): Promise<number> {
      if (!nodes.isLeader()) return 0
      const all = [...sessions.values()]
      const expired = all.filter(expiry.hasExpired)
      const unsettled = all.filter(expiry.isUnsettled)
      for (const session of unsettled) expiry.settle(session)
      await eachOf(expired, (session) => commitRemoval(session, remove(session)))
      await eachOf(unsettled.filter(isStored), storeRecord)
      const abandoned = outbox.abandonedChanges()
      await store.commit(abandoned).catch((error: unknown) => {
        outbox.finished.add(abandoned)
        throw error
      })
      return expired.length
    },

    close: owed.close,
  }

  function own(session: Session, owner: MqttConnection, before?: Session): void {
    session.owner = owner
    session.node = nodes.self
    session.version = nextVersion(before)
  }

  /** Higher than all before, on all nodes, also where their clocks disagree. */
  function nextVersion(before?: Session): number {
    return Math.max((before?.version ?? 0) + 1, (before?.storedVersion ?? 0) + 1, sequences.next())
  }

  /** Whether a principal may use this client id now. */
  function admits(clientId: string, principal: Principal): boolean {
    const session = sessions.get(clientId)
    const isFree = session === undefined || expiry.hasExpired(session)
    return isFree || session.permission === permissionKey(principal)
  }

  function isResumed(existing: Session, clean: boolean): boolean {
    return !existing.clean && !clean && !expiry.hasExpired(existing)
  }

  /**
   * Whether the credential may have this session: one more, unless it is its own already. One that it takes from another
   * credential is one more, or two with the same permissions could pass sessions on without a bound.
   */
  function hasRoom(clientId: string, clean: boolean, { username }: Principal): boolean {
    const existing = sessions.get(clientId)
    const held = sessions.persistentOf(username)
    if (clean || (existing && held.has(existing)) || held.size < maxPerCredential) return true
    return [...held].filter((session) => !expiry.hasExpired(session)).length < maxPerCredential
  }

  /** Makes the stored record of a client id right. That of another node's client is its own business. */
  async function settle(clientId: string, removal: readonly Change[]): Promise<void> {
    const session = sessions.get(clientId)
    // Its log-in says by itself what becomes of the record.
    if (session && claiming.has(session)) return
    try {
      await store.commit(session ? removal.filter((change) => !isReused(change)) : removal)
      if (!session || (isElsewhere(session) && session.node !== nodes.self)) return
      if (!session.owner) {
        session.node = undefined
        expiry.settle(session)
      }
      if (isStored(session) && (session.owner || !session.clean)) await storeRecord(session)
      else if (!session.owner) await commitRemoval(session, remove(session))
    } catch (error) {
      if (!(error instanceof ConditionFailed)) throw error
      // Another node has it by now.
      await reload(clientId)
    }
  }

  async function begin(
    clientId: string,
    clean: boolean,
    principal: Principal,
    owner: MqttConnection,
  ): Promise<{ session: Session; resumed: boolean }> {
    const existing = sessions.get(clientId)
    const permission = sessions.permission(permissionKey(principal))
    const session = createSession({ clientId, clean, permission, principal, createdAt: clock() })
    // Its record is written over where the new session has one.
    const removed = existing ? (isStored(session) ? sessions.takeOut(existing) : remove(existing)) : []
    session.storedVersion = existing?.storedVersion
    own(session, owner, existing)
    sessions.add(session)
    claiming.add(session)
    try {
      await store.commit([...removed, ...(isStored(session) ? changesOf(session) : [])])
      session.storedVersion = session.version
      return { session, resumed: false }
    } catch (error) {
      // Nobody was told of it; unless the next log-in has it already.
      if (session.owner === owner) sessions.delete(session)
      const attempted = isStored(session) ? [attemptRemoval(session, nodes.isShared)] : []
      await refused(clientId, [...removed, ...attempted], error)
      throw error
    } finally {
      claiming.delete(session)
    }
  }

  async function resume(
    session: Session,
    principal: Principal,
    owner: MqttConnection,
  ): Promise<{ session: Session; resumed: boolean }> {
    sessions.setPrincipal(session, principal)
    own(session, owner, session)
    session.disconnectedAt = undefined
    session.offlineAt = undefined
    claiming.add(session)
    try {
      await store.commit(changesOf(session))
      session.storedVersion = session.version
    } catch (error) {
      // Offline as before, or it would never expire.
      if (session.owner === owner) {
        detach(session)
        expiry.goOffline(session)
      }
      await refused(session.clientId, [], error)
      throw error
    } finally {
      claiming.delete(session)
    }
    return { session, resumed: true }
  }

  async function commitRecord(session: Session): Promise<void> {
    if (!sessions.isCurrent(session)) return
    const { clientId } = session
    const version = nextVersion(session)
    session.version = version
    try {
      await store.commit(changesOf(session))
      session.storedVersion = version
    } catch (error) {
      await refused(clientId, [], error)
      throw error
    }
  }

  /**
   * What is gone in memory goes from the store as soon as that works: left there, a later session with the
   * same client id would find the queue after a restart.
   */
  async function commitRemoval({ clientId }: Session, removed: readonly Change[]): Promise<void> {
    try {
      await store.commit(removed)
    } catch (error) {
      await refused(clientId, removed, error)
      throw error
    }
  }

  /** The store did not take what memory has already: it is told again, or memory follows the store. */
  async function refused(clientId: string, removed: readonly Change[], error: unknown): Promise<void> {
    if (!(error instanceof ConditionFailed)) owed.add(clientId, removed)
    else await reload(clientId).catch(() => owed.add(clientId))
  }

  /** A session that another node has by now, as the store has it. */
  async function reload(clientId: string): Promise<void> {
    const stored = await store.get(recordKey(clientId))
    const session = sessions.get(clientId)
    if (session?.owner) {
      const record = stored && readRecord(stored)
      // That of another node is told in a moment. Of its own, what the client was granted here is right.
      if (record?.node !== nodes.self) return
      session.storedVersion = record.version
      owed.add(clientId)
    } else if (stored) await outbox.reload(adopt(readRecord(stored)))
    else if (session) sessions.forget(session)
  }

  function changesOf(session: Session): Change[] {
    return recordChanges(session, nodes.isShared)
  }

  function adopt(record: SessionRecord): Session {
    const session = sessions.adopt(record)
    // Of a log-in here that was given up.
    if (session.node === nodes.self && !session.owner) owed.add(session.clientId)
    return session
  }
}
