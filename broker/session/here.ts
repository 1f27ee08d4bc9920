import type { HubTime } from '../hub-time.ts'
import { detach, type Session } from './session.ts'
import type { Routes } from './subscriptions.ts'

export type SessionsHere = ReturnType<typeof createSessionsHere>

/** The sessions of this node by client id, and the routes to those whose client is connected. */
export function createSessionsHere(routes: Routes, hubTime: HubTime) {
  const connected = new Map<string, Session>()
  const claiming = new Map<string, Session>()
  const leaving = new Map<string, Session>()
  const receiving = new Map<string, Session>()
  const isConnected = (session: Session) => connected.get(session.clientId) === session

  return {
    connected: connected as ReadonlyMap<string, Session>,
    /** Sessions whose clients log in: the store is about to decide whether this node gets them. */
    claiming,
    /** Sessions whose clients have gone. The store does not know that yet. */
    leaving,
    /** Sessions whose clients have gone while the store takes in QoS 2 messages that they published. */
    receiving: receiving as ReadonlyMap<string, Session>,
    isConnected,
    /** Sessions whose progress this node knows. */
    values: (): Session[] => [...connected.values(), ...leaving.values(), ...claiming.values()],

    /** The client has logged in. */
    enter(session: Session): void {
      connected.set(session.clientId, session)
      for (const [filter, { qos }] of session.subscriptions) routes.add(filter, session, qos)
    },

    /** The client is connected here no more. */
    exit(session: Session): void {
      detach(session)
      if (!isConnected(session)) return
      connected.delete(session.clientId)
      for (const [filter, { qos }] of session.subscriptions) routes.remove(filter, session, qos)
    },

    /** The client has gone. The store does not know that yet. */
    leave(session: Session): void {
      Object.assign(session, hubTime.gone())
      if (!session.clean) leaving.set(session.clientId, session)
    },

    keepReceiving,

    /** The session has ended. */
    forget(clientId: string): void {
      leaving.delete(clientId)
      receiving.delete(clientId)
    },
  }

  /** Keeps a session until its QoS 2 messages are stored: a client that resumes it meanwhile must find them. */
  async function keepReceiving(session: Session): Promise<void> {
    if (session.processing.size === 0) return
    receiving.set(session.clientId, session)
    await Promise.allSettled(session.processing.values())
    if (receiving.get(session.clientId) === session) receiving.delete(session.clientId)
  }
}
