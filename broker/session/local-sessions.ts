import type { Bridges } from '../fanout/bridges.ts'
import type { HubTime } from '../hub-time.ts'
import { type Session, underway } from './session.ts'
import type { Routes } from './subscriptions.ts'

export type LocalSessions = ReturnType<typeof createLocalSessions>

/**
 * The sessions that this node has in memory, one per client id, and their states (`Session.state`). Only connected
 * sessions are in `routes`.
 */
export function createLocalSessions(routes: Routes, bridges: Bridges, hubTime: HubTime) {
  const sessions = new Map<string, Session>()
  const claiming = new Set<Session>()
  const storingIncoming = new Map<string, Session>()

  return {
    get: (clientId: string): Session | undefined => sessions.get(clientId),

    /** The session of a client that is connected to this node. */
    connected(clientId: string): Session | undefined {
      const session = sessions.get(clientId)
      return session?.state === 'connected' ? session : undefined
    },

    /** All sessions whose progress this node knows and stores. */
    values: () => sessions.values(),

    /** The sessions that are `claiming`. */
    claiming: claiming as ReadonlySet<Session>,

    /** Sessions of gone clients whose QoS 2 messages this node is still storing. */
    storingIncoming: storingIncoming as Pick<typeof storingIncoming, 'get'>,

    claim(session: Session): void {
      const before = sessions.get(session.clientId)
      if (before) remove(before)
      sessions.set(session.clientId, session)
      claiming.add(session)
    },

    /** The store has given the session to this node: from now on its filters apply here. */
    enter(session: Session): void {
      claiming.delete(session)
      session.state = 'connected'
      // Before the filters: the first message must have the right RETAIN.
      if (session.isBridge) bridges.enter(session)
      for (const [filter, { qos }] of session.subscriptions) routes.add(filter, session, qos)
    },

    /** The client has gone. */
    leave(session: Session): void {
      void keepReceiving(session)
      Object.assign(session, hubTime.gone())
      disconnect(session)
      session.state = 'leaving'
      if (session.clean) remove(session)
    },

    remove,

    /** Removes the session of a client that is not here. */
    forget(clientId: string): void {
      storingIncoming.delete(clientId)
      const session = sessions.get(clientId)
      if (session?.state === 'leaving') remove(session)
    },
  }

  function remove(session: Session): void {
    disconnect(session)
    session.state = 'over'
    sessions.delete(session.clientId)
  }

  function disconnect(session: Session): void {
    claiming.delete(session)
    session.connection = undefined
    session.outgoing = undefined
    if (session.state !== 'connected') return
    bridges.leave(session)
    for (const [filter, { qos }] of session.subscriptions) routes.remove(filter, session, qos)
  }

  /**
   * Keeps the session until its QoS 2 messages are stored. If the client comes back and repeats one, this node must
   * recognise the message.
   */
  async function keepReceiving(session: Session): Promise<void> {
    const { receiving } = session
    if (!receiving || receiving.processing.size === 0) return
    storingIncoming.set(session.clientId, session)
    await Promise.allSettled(underway(session))
    if (storingIncoming.get(session.clientId) === session) storingIncoming.delete(session.clientId)
  }
}
