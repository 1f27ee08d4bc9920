import type { Nodes } from '../store/nodes/nodes.ts'
import { sequenceTime } from '../store/nodes/sequences.ts'
import type { MqttConnection } from './connection/connection.ts'
import type { RetainedValue } from './fanout/retained.ts'
import { isElsewhere, type Session } from './session/session.ts'

/** One row of `hubctl clients list`. */
export interface ClientView {
  clientId: string
  node: string
  username: string
  address: string
  connectedAt: string
  clean: boolean
  keepAlive: number
  subscriptions: string[]
  inFlight: number
  pendingBytes: number
}

/** A connected client as operators see it. */
export function toClientView(session: Session, connection: MqttConnection, node: string): ClientView {
  return {
    clientId: session.clientId,
    node,
    username: session.principal.username,
    address: connection.remoteAddress,
    connectedAt: new Date(connection.connectedAt).toISOString(),
    clean: session.clean,
    keepAlive: connection.request?.keepAlive ?? 0,
    subscriptions: [...session.subscriptions.keys()],
    inFlight: session.inFlight.size,
    pendingBytes: connection.outgoing.pendingBytes,
  }
}

/** One row of `hubctl sessions list`. */
export interface SessionView {
  clientId: string
  username: string
  persistent: boolean
  connected: boolean
  /** Where its client is connected. */
  node: string | null
  createdAt: string
  disconnectedAt: string | null
  /** When it is forgotten unless its client comes back; null while connected. */
  expiresAt: string | null
  subscriptions: string[]
  queued: number
  inFlight: number
  dropped: number
  oldestQueuedAt: string | null
}

/** A session as operators see it. */
export function toSessionView(session: Session, expiresAt: number | undefined, nodes: Nodes): SessionView {
  const { disconnectedAt } = session
  const [oldest] = session.queue.keys()
  return {
    clientId: session.clientId,
    username: session.principal.username,
    persistent: !session.clean,
    connected: session.connection !== undefined || isElsewhere(session),
    node: session.node === undefined ? null : nodes.nameOf(session.node),
    createdAt: new Date(session.createdAt).toISOString(),
    disconnectedAt: disconnectedAt === undefined ? null : new Date(disconnectedAt).toISOString(),
    expiresAt: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
    subscriptions: [...session.subscriptions.keys()],
    queued: session.queue.size,
    inFlight: session.inFlight.size,
    dropped: session.dropped,
    oldestQueuedAt: oldest === undefined ? null : new Date(sequenceTime(oldest)).toISOString(),
  }
}

/** One row of `hubctl retained list`. */
export interface RetainedView {
  topic: string
  eventTime: string
  expires: string | null
  bytes: number
  payload: string
}

/** A retained message as operators see it. */
export function toRetainedView({ topic, time, expires, payload }: RetainedValue): RetainedView {
  return {
    topic,
    eventTime: new Date(time).toISOString(),
    expires: expires === undefined ? null : new Date(expires).toISOString(),
    bytes: payload.length,
    payload: payload.toString(),
  }
}
