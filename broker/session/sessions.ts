import { type Principal, permissionKey } from '../../acl/principal.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import type { Change, Store } from '../../store/store.ts'
import type { MqttConnection } from '../connection/connection.ts'
import type { Qos } from '../connection/wire.ts'
import type { Routes } from '../fanout/distribution.ts'
import type { Outbox } from '../queue/outbox.ts'
import type { HubTime } from './hub-time.ts'
import { createOwed } from './owed.ts'
import { createRecordCommits } from './record-commits.ts'
import {
  createSession,
  detach,
  ForeignSession,
  isElsewhere,
  type Session,
  TooManySessions,
} from './session.ts'
import { createSessionExpiry } from './session-expiry.ts'
import { loadSessions } from './session-loading.ts'
import { createRegister } from './session-register.ts'
import { incomingKey, isReused, recordChange, recordKey, type SessionRecord } from './session-store.ts'

export type Sessions = Awaited<ReturnType<typeof openSessions>>

/**
 * All sessions: of connected clients, and of offline ones that asked to be remembered.
 *
 * A session belongs to the permissions it was made with (design.md §5): another principal with the same
 * permissions may resume it, anybody else is refused while it exists.
 */
export async function openSessions(parts: {
  store: Store
  outbox: Outbox
  routes: Routes
  nodes: Nodes
  clock: () => number
  hubTime: HubTime
  /** Offline sessions are forgotten after this time, milliseconds. */
  expiryMs: number
  /** Persistent sessions of one credential. */
  maxPerCredential: number
}) {
  const { store, outbox, routes, nodes, clock, maxPerCredential } = parts
  const sessions = createRegister()
  const expiry = createSessionExpiry(parts)
  const storeRecord = createRecordCommits(store, sessions.isCurrent)
  /** Claims on their way into the store, and the foreign one that was there first. */
  const claiming = new Map<Session, SessionRecord | undefined>()
  const owed = createOwed({ store, changesFor })
  await loadSessions({
    ...{ store, outbox, nodes, adopt, now: clock() },
    get: sessions.get,
  })

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
      // Another node may have let somebody in meanwhile.
      if (!admits(clientId, principal)) throw new ForeignSession()
      const existing = sessions.get(clientId)
      if (!hasRoom(clientId, clean, principal)) throw new TooManySessions()
      if (existing && isResumed(existing, clean)) return resume(existing, principal, owner)
      const removed = existing ? remove(existing) : []
      const permission = sessions.permission(permissionKey(principal))
      const session = createSession({ clientId, clean, permission, principal, createdAt: clock() })
      own(session, owner, existing?.claimedAt)
      sessions.add(session)
      claiming.set(session, undefined)
      try {
        await commitRemoval(removed, isStored(session) ? [recordChange(session)] : [])
        await yieldToFirst(session)
      } catch (error) {
        // Nobody was told of it; unless the next log-in has it already.
        if (session.owner === owner) sessions.delete(session)
        if (isStored(session)) owed.add(clientId)
        throw error
      } finally {
        claiming.delete(session)
      }
      return { session, resumed: false }
    },

    /** Grants a filter in memory; `storeSubscriptions` makes it last. */
    subscribe(session: Session, filter: string, qos: Qos): void {
      const before = session.subscriptions.get(filter)
      if (before === qos) return
      if (before !== undefined) routesOf(session, before).remove(filter, session)
      session.subscriptions.set(filter, qos)
      routesOf(session, qos).add(filter, session, qos)
    },

    unsubscribe(session: Session, filter: string): void {
      const qos = session.subscriptions.get(filter)
      if (qos === undefined) return
      session.subscriptions.delete(filter)
      routesOf(session, qos).remove(filter, session)
    },

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
      await orOwed(session, store.commit(session.clean ? remove(session) : [recordChange(session)]))
    },

    /** Forgets a session and everything queued for it. The caller closes its connection. */
    async drop(session: Session): Promise<void> {
      await orOwed(session, commitRemoval(remove(session)))
    },

    /** Of another node, or of one that is gone: as the store has it. */
    adopt,

    /** Another node has removed it. */
    forget(session: Session): void {
      sessions.delete(session)
      leaveRoutes(session)
      outbox.forgetAll(session)
    },

    /** Notes who was first; true when a claim of this node is on its way, and that will be decided then. */
    isClaiming(session: Session, record: SessionRecord): boolean {
      if (!claiming.has(session)) return false
      if (record.permission !== session.permission) claiming.set(session, record)
      return true
    },

    /** Stores again what this node holds: others wrote over it, because they took this node for dead. */
    async reassert(held: readonly Session[]): Promise<void> {
      for (const session of held) session.node = nodes.self
      try {
        await store.commit(held.map(recordChange))
      } catch (error) {
        for (const { clientId } of held) owed.add(clientId)
        throw error
      }
    },

    /** Ends the connections of nodes that are gone. */
    async releaseGone(): Promise<void> {
      const changes: Change[] = []
      for (const session of [...sessions.values()]) {
        if (session.node === undefined || session.owner || nodes.isLiving(session.node)) continue
        expiry.goOffline(session)
        if (nodes.isLeader()) changes.push(...(session.clean ? remove(session) : [recordChange(session)]))
      }
      await store.commit(changes)
    },

    /** Forgets sessions that have been offline for too long. Returns how many. */
    async sweep(): Promise<number> {
      if (!nodes.isLeader()) return 0
      const all = [...sessions.values()]
      const expired = all.filter(expiry.hasExpired)
      const unsettled = all.filter(expiry.isUnsettled)
      for (const session of unsettled) expiry.settle(session)
      const removed = [...expired.flatMap(remove), ...outbox.abandonedChanges()]
      await commitRemoval(removed, unsettled.filter(isStored).map(recordChange))
      return expired.length
    },

    close: owed.close,
  }

  /** The later of two log-ins has the higher number, also where nodes disagree about the time. */
  function own(session: Session, owner: MqttConnection, claimedBefore = 0): void {
    session.owner = owner
    session.node = nodes.self
    session.claimedAt = Math.max(claimedBefore + 1, clock())
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

  async function orOwed(session: Session, stored: Promise<void>): Promise<void> {
    await stored.catch((error) => {
      if (isStored(session)) owed.add(session.clientId)
      throw error
    })
  }

  /** What makes the stored record of a client id right. That of another node's client is its own business. */
  function changesFor(clientId: string): Change[] {
    const session = sessions.get(clientId)
    if (!session) return [{ del: recordKey(clientId) }]
    if (session.owner) return isStored(session) ? [recordChange(session)] : []
    if (isElsewhere(session) && session.node !== nodes.self) return []
    session.node = undefined
    expiry.settle(session)
    return session.clean ? remove(session) : [recordChange(session)]
  }

  async function resume(
    session: Session,
    principal: Principal,
    owner: MqttConnection,
  ): Promise<{ session: Session; resumed: boolean }> {
    sessions.setPrincipal(session, principal)
    own(session, owner, session.claimedAt)
    session.disconnectedAt = undefined
    session.offlineAt = undefined
    claiming.set(session, undefined)
    try {
      await store.commit([recordChange(session)])
    } catch (error) {
      // Refused: offline as before, or it would never expire.
      if (session.owner === owner) {
        detach(session)
        expiry.goOffline(session)
        owed.add(session.clientId)
      }
      throw error
    } finally {
      claiming.delete(session)
    }
    return { session, resumed: true }
  }

  /**
   * What is gone in memory goes from the store as soon as that works: left there, a later session with the
   * same client id would find the queue after a restart. The record itself is overwritten by the next one.
   */
  async function commitRemoval(removed: readonly Change[], added: readonly Change[] = []): Promise<void> {
    try {
      await store.commit([...removed, ...added])
    } catch (error) {
      outbox.finished.add(removed.filter((change) => !isReused(change)))
      throw error
    }
  }

  function routesOf(session: Session, qos: Qos): Routes['live'] {
    return !session.clean && qos > 0 ? routes.stored : routes.live
  }

  /**
   * Two nodes may let the same client id in at the same moment: the first in the order of commits has it, with
   * its permissions, and what the second wrote over it is put back.
   */
  async function yieldToFirst(session: Session): Promise<void> {
    const first = claiming.get(session)
    if (!first) return
    await store.commit([{ put: recordKey(session.clientId), value: JSON.stringify(first) }])
    sessions.delete(session)
    adopt(first)
    throw new ForeignSession()
  }

  function adopt(record: SessionRecord): Session {
    const known = sessions.get(record.clientId)
    const isSame = known?.createdAt === record.createdAt && known.clean === record.clean
    if (known && !isSame) {
      leaveRoutes(known)
      outbox.forgetAll(known)
    }
    const session =
      known && isSame
        ? known
        : createSession({ ...record, permission: sessions.permission(record.permission) })
    sessions.setPrincipal(session, record.principal)
    session.node = record.node
    session.disconnectedAt = record.disconnectedAt
    session.offlineAt = record.offlineAt
    session.claimedAt = record.claimedAt
    sessions.add(session)
    // Of a log-in here that was given up.
    if (session.node === nodes.self && !session.owner) owed.add(session.clientId)
    const filters = new Map(record.subscriptions)
    for (const [filter, qos] of [...session.subscriptions]) {
      if (filters.get(filter) === qos) continue
      session.subscriptions.delete(filter)
      routesOf(session, qos).remove(filter, session)
    }
    for (const [filter, qos] of filters) {
      if (session.subscriptions.has(filter)) continue
      session.grantedElsewhere = ++routes.grantedElsewhere
      session.subscriptions.set(filter, qos)
      routesOf(session, qos).add(filter, session, qos)
    }
    if (session !== known && !session.clean) outbox.resume(session)
    return session
  }

  /** With several nodes the others must know of every client id that is in use. */
  function isStored(session: Session): boolean {
    return !session.clean || nodes.isShared
  }

  function leaveRoutes(session: Session): void {
    for (const [filter, qos] of session.subscriptions) routesOf(session, qos).remove(filter, session)
  }

  /** Takes a session out in memory; the changes take it out of the store. */
  function remove(session: Session): Change[] {
    sessions.delete(session)
    leaveRoutes(session)
    const queued = outbox.clear(session)
    if (session.clean) return nodes.isShared ? [{ del: recordKey(session.clientId) }] : []
    const incoming = [...session.incoming].map((packetId) => ({
      del: incomingKey(session.clientId, packetId),
    }))
    return [{ del: recordKey(session.clientId) }, ...queued, ...incoming]
  }
}
