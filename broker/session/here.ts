import type { Bridges } from '../fanout/bridges.ts'
import type { HubTime } from '../hub-time.ts'
import { detach, type Session } from './session.ts'
import type { Routes } from './subscriptions.ts'

export type SessionsHere = ReturnType<typeof createSessionsHere>

/** Holds the sessions of this node by client id, and keeps `routes` up to date with the connected clients. */
export function createSessionsHere(routes: Routes, bridges: Bridges, hubTime: HubTime) {
  const connected = new Map<string, Session>()
  const claiming = new Map<string, Session>()
  const leaving = new Map<string, Session>()
  const storingIncoming = new Map<string, Session>()
  const isConnected = (session: Session) => connected.get(session.clientId) === session

  return {
    connected: connected as ReadonlyMap<string, Session>,
    /** Sessions whose clients are logging in. The store has not decided yet whether this node gets them. */
    claiming,
    /** Persistent sessions whose clients have gone. This node has not stored that yet. */
    leaving,
    /** Sessions of gone clients whose QoS 2 messages this node is still storing. */
    storingIncoming: storingIncoming as ReadonlyMap<string, Session>,
    isConnected,
    /** All sessions whose progress this node knows and stores. */
    values: (): Session[] => [...connected.values(), ...leaving.values(), ...claiming.values()],

    /** Call it when the client has logged in. */
    enter(session: Session): void {
      connected.set(session.clientId, session)
      if (session.isBridge) bridges.enter(session)
      for (const [filter, { qos }] of session.subscriptions) routes.add(filter, session, qos)
    },

    /** Call it when the client is no longer connected to this node. */
    exit(session: Session): void {
      detach(session)
      if (!isConnected(session)) return
      connected.delete(session.clientId)
      bridges.leave(session)
      for (const [filter, { qos }] of session.subscriptions) routes.remove(filter, session, qos)
    },

    /** Call it when the client has gone. */
    leave(session: Session): void {
      Object.assign(session, hubTime.gone())
      if (!session.clean) leaving.set(session.clientId, session)
    },

    keepReceiving,

    /** Call it when the session has ended. */
    forget(clientId: string): void {
      leaving.delete(clientId)
      storingIncoming.delete(clientId)
    },
  }

  /**
   * Keeps the session until its QoS 2 messages are stored. If the client comes back and repeats one, this node must
   * recognise the message.
   */
  async function keepReceiving(session: Session): Promise<void> {
    if (session.processing.size === 0) return
    storingIncoming.set(session.clientId, session)
    await Promise.allSettled(session.processing.values())
    if (storingIncoming.get(session.clientId) === session) storingIncoming.delete(session.clientId)
  }
}
