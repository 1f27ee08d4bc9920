import { type Principal, permissionKey } from '../acl/principal.ts'
import type { Nodes } from '../nodes/nodes.ts'
import type { Change, Store } from '../store/store.ts'
import type { MqttConnection } from './connection.ts'
import type { Routes } from './distribution.ts'
import type { Outbox } from './outbox.ts'
import { createOwed } from './owed.ts'
import { createSession, detach, isElsewhere, type Session } from './session.ts'
import { loadSessions } from './session-loading.ts'
import {
  incomingKey,
  incomingPrefix,
  recordChange,
  recordKey,
  recordPrefix,
  type SessionRecord,
} from './session-store.ts'
import type { Qos } from './wire.ts'

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
  /** Offline sessions are forgotten after this time, milliseconds. */
  expiryMs: number
}) {
  const { store, outbox, routes, nodes, clock, expiryMs } = parts
  const sessions = new Map<string, Session>()
  /** One text for all sessions of the same permissions: comparing them is comparing addresses. */
  const permissions = new Map<string, string>()
  const storing = new Map<Session, { current: Promise<void>; next?: Promise<void> }>()
  /** Claims on their way into the store, and the foreign one that was there first. */
  const claiming = new Map<Session, SessionRecord | undefined>()
  const owed = createOwed({ store, changesFor })
  await loadSessions({
    ...{ store, outbox, nodes, adopt, now: clock() },
    get: (clientId) => sessions.get(clientId),
  })

  return {
    get: (clientId: string) => sessions.get(clientId),
    values: () => sessions.values(),

    /** Whether a principal may use this client id now. */
    admits(clientId: string, principal: Principal): boolean {
      const session = sessions.get(clientId)
      return session === undefined || session.permission === permissionKey(principal)
    },

    /**
     * The session of a client that logs in: resumed, or new. Nobody else may own it at this moment, and
     * `admits` has said yes. Rejects when it cannot be stored.
     */
    async claim(
      clientId: string,
      clean: boolean,
      principal: Principal,
      owner: MqttConnection,
    ): Promise<{ session: Session; resumed: boolean }> {
      const existing = sessions.get(clientId)
      if (existing && !existing.clean && !clean) return resume(existing, principal, owner)
      const removed = existing ? remove(existing) : []
      const permission = shared(permissionKey(principal))
      const session = createSession({ clientId, clean, permission, principal, createdAt: clock() })
      own(session, owner, existing?.claimedAt)
      sessions.set(clientId, session)
      claiming.set(session, undefined)
      try {
        await commitRemoval(removed, isStored(session) ? [recordChange(session)] : [])
        await yieldToFirst(session)
      } catch (error) {
        // Nobody was told of it; unless the next log-in has it already.
        if (session.owner === owner && sessions.get(clientId) === session) sessions.delete(clientId)
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

    /** Stores what a persistent session is subscribed to now; changes in quick succession share a commit. */
    async storeSubscriptions(session: Session): Promise<void> {
      if (session.clean) return
      const underway = storing.get(session)
      if (!underway) return storeRecord(session)
      underway.next ??= Promise.allSettled([underway.current]).then(() => storeRecord(session))
      return underway.next
    },

    /** The connection is gone: a clean session ends [MQTT-3.1.2-6], another waits for its client. */
    async release(session: Session, owner: MqttConnection): Promise<void> {
      if (session.owner !== owner) return
      detach(session)
      session.node = undefined
      session.disconnectedAt = clock()
      if (sessions.get(session.clientId) !== session) return
      try {
        await store.commit(session.clean ? remove(session) : [recordChange(session)])
      } catch (error) {
        if (isStored(session)) owed.add(session.clientId)
        throw error
      }
    },

    /** Forgets a session and everything queued for it. The caller closes its connection. */
    async drop(session: Session): Promise<void> {
      try {
        await commitRemoval(remove(session))
      } catch (error) {
        if (isStored(session)) owed.add(session.clientId)
        throw error
      }
    },

    /** Of another node, or of one that is gone: as the store has it. */
    adopt,

    /** Another node has removed it. */
    forget(session: Session): void {
      sessions.delete(session.clientId)
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
        session.node = undefined
        session.disconnectedAt = clock()
        if (nodes.isLeader()) changes.push(...(session.clean ? remove(session) : [recordChange(session)]))
      }
      await store.commit(changes)
    },

    /** Forgets sessions that have been offline for too long. Returns how many. */
    async sweep(): Promise<number> {
      if (!nodes.isLeader()) return 0
      const limit = clock() - expiryMs
      const expired = [...sessions.values()].filter(
        ({ disconnectedAt }) => (disconnectedAt ?? Infinity) <= limit,
      )
      await commitRemoval([...expired.flatMap(remove), ...outbox.abandonedChanges()])
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

  /** What makes the stored record of a client id right. That of another node's client is its own business. */
  function changesFor(clientId: string): Change[] {
    const session = sessions.get(clientId)
    if (!session) return [{ del: recordKey(clientId) }]
    if (session.owner) return isStored(session) ? [recordChange(session)] : []
    if (isElsewhere(session) && session.node !== nodes.self) return []
    session.node = undefined
    session.disconnectedAt ??= clock()
    return session.clean ? remove(session) : [recordChange(session)]
  }

  function shared(permission: string): string {
    const known = permissions.get(permission)
    if (known === undefined) permissions.set(permission, permission)
    return known ?? permission
  }

  function storeRecord(session: Session): Promise<void> {
    const isKnown = sessions.get(session.clientId) === session
    const current = store.commit(isKnown ? [recordChange(session)] : [])
    const underway = { current }
    storing.set(session, underway)
    const over = () => {
      if (storing.get(session) === underway && !('next' in underway)) storing.delete(session)
    }
    current.then(over, over)
    return current
  }

  async function resume(
    session: Session,
    principal: Principal,
    owner: MqttConnection,
  ): Promise<{ session: Session; resumed: boolean }> {
    session.principal = principal
    own(session, owner, session.claimedAt)
    session.disconnectedAt = undefined
    claiming.set(session, undefined)
    try {
      await store.commit([recordChange(session)])
    } catch (error) {
      // Refused: offline as before, or it would never expire.
      if (session.owner === owner) {
        detach(session)
        session.node = undefined
        session.disconnectedAt = clock()
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
    sessions.delete(session.clientId)
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
      known && isSame ? known : createSession({ ...record, permission: shared(record.permission) })
    session.principal = record.principal
    session.node = record.node
    session.disconnectedAt = record.disconnectedAt
    session.claimedAt = record.claimedAt
    sessions.set(session.clientId, session)
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
    sessions.delete(session.clientId)
    leaveRoutes(session)
    const queued = outbox.clear(session)
    if (session.clean) return nodes.isShared ? [{ del: recordKey(session.clientId) }] : []
    const incoming = [...session.incoming].map((packetId) => ({
      del: incomingKey(session.clientId, packetId),
    }))
    return [{ del: recordKey(session.clientId) }, ...queued, ...incoming]
  }
}

/** Another node has let somebody in under this client id who has other permissions. */
export class ForeignSession extends Error {}

/** Whether a later session of the same client id writes the same key. */
function isReused(change: Change): boolean {
  return 'del' in change && (change.del.startsWith(recordPrefix) || change.del.startsWith(incomingPrefix))
}
