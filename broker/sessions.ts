import { type Principal, permissionKey } from '../acl/principal.ts'
import type { Change, Store } from '../store/store.ts'
import type { MqttConnection } from './connection.ts'
import type { Routes } from './distribution.ts'
import type { Outbox } from './outbox.ts'
import { createSession, type Session } from './session.ts'
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
  clock: () => number
  /** Offline sessions are forgotten after this time, milliseconds. */
  expiryMs: number
}) {
  const { store, outbox, routes, clock, expiryMs } = parts
  const sessions = new Map<string, Session>()
  /** One text for all sessions of the same permissions: comparing them is comparing addresses. */
  const permissions = new Map<string, string>()
  const storing = new Map<Session, { current: Promise<void>; next?: Promise<void> }>()
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
      sessions.set(clientId, session)
      try {
        await commitRemoval(removed, clean ? [] : [recordChange(session)])
      } catch (error) {
        // Nobody was told of it; unless the next log-in has it already.
        if (session.owner === owner && sessions.get(clientId) === session) sessions.delete(clientId)
        throw error
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
      session.owner = undefined
      session.connection = undefined
      session.disconnectedAt = clock()
      if (sessions.get(session.clientId) !== session) return
      if (session.clean) remove(session)
      else await store.commit([recordChange(session)])
    },

    /** Forgets a session and everything queued for it. The caller closes its connection. */
    async drop(session: Session): Promise<void> {
      await commitRemoval(remove(session))
    },

    /** Forgets sessions that have been offline for too long. Returns how many. */
    async sweep(): Promise<number> {
      const limit = clock() - expiryMs
      const expired = [...sessions.values()].filter(
        ({ disconnectedAt }) => (disconnectedAt ?? Infinity) <= limit,
      )
      await commitRemoval(expired.flatMap(remove))
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
    session.disconnectedAt = undefined
    try {
      await store.commit([recordChange(session)])
    } catch (error) {
      // Refused: offline as before, or it would never expire.
      if (session.owner === owner) {
        session.owner = undefined
        session.disconnectedAt = clock()
      }
      throw error
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

  /** Takes a session out in memory; the changes take it out of the store. */
  function remove(session: Session): Change[] {
    sessions.delete(session.clientId)
    for (const [filter, qos] of session.subscriptions) routesOf(session, qos).remove(filter, session)
    const queued = outbox.clear(session)
    if (session.clean) return []
    const incoming = [...session.incoming].map((packetId) => ({
      del: incomingKey(session.clientId, packetId),
    }))
    return [{ del: recordKey(session.clientId) }, ...queued, ...incoming]
  }

  async function load(): Promise<void> {
    const now = clock()
    for await (const [, value] of store.range(recordPrefix)) {
      const { subscriptions, disconnectedAt, ...record }: SessionRecord = JSON.parse(value.toString())
      const session = createSession({ ...record, permission: shared(record.permission), clean: false })
      // A session that was connected when the node died has been offline since then: since now at the latest.
      session.disconnectedAt = disconnectedAt ?? now
      sessions.set(session.clientId, session)
      for (const [filter, qos] of subscriptions) {
        session.subscriptions.set(filter, qos)
        routesOf(session, qos).add(filter, session, qos)
      }
      outbox.resume(session)
    }
    await outbox.dropOrphans()
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

const recordPrefix = 'session/'
const incomingPrefix = 'incoming/'
const noop = () => {}

/** Whether a later session of the same client id writes the same key. */
function isReused(change: Change): boolean {
  return 'del' in change && (change.del.startsWith(recordPrefix) || change.del.startsWith(incomingPrefix))
}

/** Remembers a received QoS 2 packet identifier until its PUBREL [MQTT-4.3.3-2]. */
export function incomingChange(session: Session, packetId: number): Change {
  return { put: incomingKey(session.clientId, packetId), value: identityOf(session) }
}

/** What tells sessions of one client id apart that follow each other. */
function identityOf({ createdAt }: Session): string {
  return String(createdAt)
}

export function incomingKey(clientId: string, packetId: number): string {
  return `${incomingPrefix}${encodeURIComponent(clientId)}/${packetId}`
}

interface SessionRecord {
  clientId: string
  permission: string
  principal: Principal
  createdAt: number
  disconnectedAt?: number
  subscriptions: [filter: string, qos: Qos][]
}

function recordChange(session: Session): Change {
  const { clientId, permission, principal, createdAt, disconnectedAt } = session
  const record: SessionRecord = {
    clientId,
    permission,
    principal,
    createdAt,
    ...(disconnectedAt !== undefined && { disconnectedAt }),
    subscriptions: [...session.subscriptions],
  }
  return { put: recordKey(clientId), value: JSON.stringify(record) }
}

function recordKey(clientId: string): string {
  return `${recordPrefix}${encodeURIComponent(clientId)}`
}
