import type { Nodes } from '../../store/nodes/nodes.ts'
import type { Sequences } from '../../store/nodes/sequences.ts'
import type { Change } from '../../store/store.ts'
import type { Qos } from '../connection/wire.ts'
import type { Routes } from '../fanout/distribution.ts'
import type { Outbox } from '../queue/outbox.ts'
import { createSession, type Session } from './session.ts'
import { createRegister } from './session-register.ts'
import { incomingKey, recordRemoval, type SessionRecord } from './session-store.ts'

/** The sessions as this node has them in memory, with the routes to them and their queues. */
export function createSessionMemory(parts: {
  outbox: Outbox
  routes: Routes
  nodes: Nodes
  sequences: Sequences
  /** Whether a session that is read from the store keeps a filter. */
  mayHave: (session: Session, filter: string) => boolean
}) {
  const { outbox, routes, nodes, sequences, mayHave } = parts
  const register = createRegister()

  return {
    ...register,
    isStored,

    /** Grants a filter. */
    subscribe(session: Session, filter: string, qos: Qos): void {
      const before = session.subscriptions.get(filter)
      if (before === qos) return
      if (before !== undefined) routesOf(session, before).remove(filter, session)
      session.grantedAt = sequences.next()
      session.subscriptions.set(filter, qos)
      routesOf(session, qos).add(filter, session, qos)
    },

    unsubscribe,

    /** Takes over a session of another node, or of one that is gone, as the store has it. */
    adopt(record: SessionRecord): Session {
      const known = register.get(record.clientId)
      const isSame = known?.createdAt === record.createdAt && known.clean === record.clean
      if (known && !isSame) {
        leaveRoutes(known)
        outbox.forgetAll(known)
      }
      const permission = register.permission(record.permission)
      const session = known && isSame ? known : createSession({ ...record, permission })
      register.setPrincipal(session, record.principal)
      session.node = record.node
      session.disconnectedAt = record.disconnectedAt
      session.offlineAt = record.offlineAt
      session.version = record.version
      session.storedVersion = record.version
      sequences.heard(record.version)
      register.add(session)
      adoptFilters(session, record)
      if (session !== known && !session.clean) outbox.resume(session)
      return session
    },

    adoptFilters,

    /** Another node has removed it from the store. */
    forget(session: Session): void {
      register.delete(session)
      leaveRoutes(session)
      outbox.forgetAll(session)
    },

    /** Takes a session out; the changes take it out of the store. */
    remove(session: Session): Change[] {
      const rest = takeOut(session)
      return isStored(session) ? [recordRemoval(session, nodes.isShared), ...rest] : rest
    },

    /** The same, but for its record. */
    takeOut,
  }

  /** With several nodes the others must know of every client id that is in use. */
  function isStored({ clean }: Session): boolean {
    return !clean || nodes.isShared
  }

  function takeOut(session: Session): Change[] {
    const { clientId, clean, incoming } = session
    register.delete(session)
    leaveRoutes(session)
    const queued = outbox.clear(session)
    if (clean) return []
    return [...queued, ...[...incoming.keys()].map((packetId) => ({ del: incomingKey(clientId, packetId) }))]
  }

  /** Takes over the filters that another node has granted to a session. */
  function adoptFilters(session: Session, { subscriptions, grantedAt }: SessionRecord): void {
    const filters = new Map(subscriptions)
    session.grantedAt = grantedAt
    for (const [filter, qos] of [...session.subscriptions]) {
      if (filters.get(filter) === qos) continue
      routes.removedElsewhere++
      unsubscribe(session, filter)
    }
    for (const [filter, qos] of filters) {
      if (session.subscriptions.has(filter) || !mayHave(session, filter)) continue
      session.grantedElsewhere = ++routes.grantedElsewhere
      session.subscriptions.set(filter, qos)
      routesOf(session, qos).add(filter, session, qos)
    }
  }

  function unsubscribe(session: Session, filter: string): void {
    const qos = session.subscriptions.get(filter)
    if (qos === undefined) return
    session.subscriptions.delete(filter)
    routesOf(session, qos).remove(filter, session)
  }

  function leaveRoutes(session: Session): void {
    for (const [filter, qos] of session.subscriptions) routesOf(session, qos).remove(filter, session)
  }

  function routesOf({ clean }: Session, qos: Qos): Routes['live'] {
    return !clean && qos > 0 ? routes.stored : routes.live
  }
}
