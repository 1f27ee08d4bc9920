import { type Principal, permissionKey } from '../acl/principal.ts'
import type { Nodes } from '../nodes/nodes.ts'
import type { Change, Store } from '../store/store.ts'
import type { MqttConnection } from './connection.ts'
import type { Routes } from './distribution.ts'
import type { Outbox } from './outbox.ts'
import { createSession, type Session } from './session.ts'
import {
  identityOf,
  incomingKey,
  incomingPrefix,
  readRecord,
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
  await load()

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
      session.owner = owner
      session.node = nodes.self
      sessions.set(clientId, session)
      claiming.set(session, undefined)
      try {
        await commitRemoval(removed, isStored(session) ? [recordChange(session)] : [])
        await yieldToFirst(session)
      } catch (error) {
        // Nobody was told of it; unless the next log-in has it already.
        if (session.owner === owner && sessions.get(clientId) === session) sessions.delete(clientId)
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
      underway.next ??= underway.current.then(noop, noop).then(() => storeRecord(session))
      return underway.next
    },

    /** The connection is gone: a clean session ends [MQTT-3.1.2-6], another waits for its client. */
    async release(session: Session, owner: MqttConnection): Promise<void> {
      if (session.owner !== owner) return
      Object.assign(session, { owner: undefined, connection: undefined, node: undefined })
      session.disconnectedAt = clock()
      if (sessions.get(session.clientId) !== session) return
      await store.commit(session.clean ? remove(session) : [recordChange(session)])
    },

    /** Forgets a session and everything queued for it. The caller closes its connection. */
    async drop(session: Session): Promise<void> {
      await commitRemoval(remove(session))
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
      await store.commit(held.map(recordChange))
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
      await commitRemoval([...expired.flatMap(remove), ...outbox.abandonedBodies()])
      return expired.length
    },
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
    session.owner = owner
    session.node = nodes.self
    session.disconnectedAt = undefined
    claiming.set(session, undefined)
    try {
      await store.commit([recordChange(session)])
    } catch (error) {
      // Refused: offline as before, or it would never expire.
      if (session.owner === owner) {
        session.owner = undefined
        session.node = undefined
        session.disconnectedAt = clock()
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
    sessions.set(session.clientId, session)
    const filters = new Map(record.subscriptions)
    for (const [filter, qos] of [...session.subscriptions]) {
      if (filters.get(filter) === qos) continue
      session.subscriptions.delete(filter)
      routesOf(session, qos).remove(filter, session)
    }
    for (const [filter, qos] of filters) {
      if (session.subscriptions.has(filter)) continue
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

  async function load(): Promise<void> {
    const now = clock()
    const left: Change[] = []
    for await (const [key, value] of store.range(recordPrefix)) {
      const { node, ...record } = readRecord(value)
      const isHeld = nodes.isShared && node !== undefined && nodes.isLiving(node)
      if (record.clean && !isHeld) left.push({ del: key })
      // A session that was connected when its node died has been offline since then: since now at the latest.
      else if (isHeld) adopt({ ...record, node })
      else adopt({ ...record, disconnectedAt: record.disconnectedAt ?? now })
    }
    await store.commit(left)
    // Other nodes may be writing what is missing here.
    if (!nodes.isShared) await outbox.dropOrphans()
    const forgotten: Change[] = []
    for await (const [key, value] of store.range(incomingPrefix)) {
      const [, clientId = '', packetId = ''] = key.split('/')
      const session = sessions.get(decodeURIComponent(clientId))
      // Of an earlier session with the same client id, whose end overtook the message.
      if (session && value.toString() === identityOf(session)) session.incoming.add(Number(packetId))
      else forgotten.push({ del: key })
    }
    await store.commit(forgotten)
  }
}

const noop = () => {}

/** Another node has let somebody in under this client id who has other permissions. */
export class ForeignSession extends Error {}

/** Whether a later session of the same client id writes the same key. */
function isReused(change: Change): boolean {
  return 'del' in change && (change.del.startsWith(recordPrefix) || change.del.startsWith(incomingPrefix))
}
