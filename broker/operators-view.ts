import type { RetainedValue } from '../journal/retained-value.ts'
import type { MqttConnection } from './connection/connection.ts'
import type { KnownSession } from './session/known-sessions.ts'
import type { Session } from './session/session.ts'

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
  /** The node that its client is connected to. */
  node: string | null
  createdAt: string
  disconnectedAt: string | null
  /** When the session is forgotten if its client does not come back; null while connected. */
  expiresAt: string | null
  subscriptions: string[]
  /** Null in the list if the client is away: `hubctl sessions show` counts the messages. */
  queued: number | null
  inFlight: number | null
  dropped: number
}

/** The figures of a connected session. Only the node of its client knows them. */
export interface SessionFigures {
  clientId: string
  clean: boolean
  username: string
  createdAt: number
  subscriptions: string[]
  queued: number
  inFlight: number
  dropped: number
}

export function figuresOf(session: Session): SessionFigures {
  const { clientId, clean, principal, createdAt, subscriptions, backlog, inFlight, dropped } = session
  return {
    clientId,
    clean,
    username: principal.username,
    createdAt,
    subscriptions: [...subscriptions.keys()],
    queued: backlog.length + inFlight.size,
    inFlight: inFlight.size,
    dropped,
  }
}

/** A session as operators see it. */
export function toSessionView(
  {
    clientId,
    clean = false,
    createdAt,
    disconnectedAt,
    username,
  }: Pick<KnownSession, 'clientId' | 'createdAt' | 'username'> & {
    clean?: boolean
    disconnectedAt?: number | undefined
  },
  place: { node: string | undefined; expiresAt: number | undefined },
  figures: Pick<SessionView, 'subscriptions' | 'queued' | 'inFlight' | 'dropped'>,
): SessionView {
  const { node, expiresAt } = place
  const { subscriptions, queued, inFlight, dropped } = figures
  return {
    clientId,
    username,
    persistent: !clean,
    connected: node !== undefined,
    node: node ?? null,
    createdAt: new Date(createdAt).toISOString(),
    disconnectedAt: disconnectedAt === undefined ? null : new Date(disconnectedAt).toISOString(),
    expiresAt: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
    subscriptions,
    queued,
    inFlight,
    dropped,
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
