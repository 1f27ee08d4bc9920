import type { Change, Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { LocalSessions } from './session/local-sessions.ts'
import type { Session } from './session/session.ts'
import { incomingChange, incomingPrefix } from './session/session-record.ts'

export type Incoming = ReturnType<typeof createIncoming>

/** Recognises repeated QoS 2 messages of clients by the packet identifier, until PUBREL [MQTT-4.3.3-2]. */
export function createIncoming(parts: {
  store: Store
  local: LocalSessions
  /** Maximum number of QoS 2 messages that one client has not released by PUBREL. */
  window: number
  log: Log
  metrics: Metrics
}) {
  const { store, local, window, log, metrics } = parts

  return {
    window,

    /**
     * Whether the hub accepts an earlier PUBLISH with this packet identifier that still waits for PUBREL. A promise:
     * the commit of that PUBLISH is under way. Undefined: no such PUBLISH waits.
     */
    find({ incoming, processing }: Session, packetId: number): true | Promise<boolean> | undefined {
      return incoming.has(packetId) ? true : processing.get(packetId)
    },

    hasRoom: ({ incoming, processing }: Session): boolean => incoming.size + processing.size < window,

    /** The changes to store with a message. A clean session ends with its connection, and stores none. */
    changes: (session: Session, packetId: number): readonly Change[] =>
      session.clean ? [] : [incomingChange(session, packetId)],

    /** Notes a new message whose commit is under way. Resolves with whether the message is accepted. */
    async add(session: Session, packetId: number, accepted: Promise<boolean>): Promise<boolean> {
      session.processing.set(packetId, accepted)
      try {
        const isAccepted = await accepted
        if (isAccepted) session.incoming.add(packetId)
        return isAccepted
      } finally {
        session.processing.delete(packetId)
      }
    },

    /**
     * Whether a message with this packet identifier is accepted and not released. Waits for its commit, if under way.
     */
    async isIncoming(clientId: string, packetId: number): Promise<boolean> {
      const session = local.connected(clientId)
      if (!session) return false
      await session.processing.get(packetId)?.catch(() => undefined)
      return session.incoming.has(packetId)
    },

    /**
     * Stores the release of a packet identifier, before PUBCOMP [MQTT-4.3.3-2]: afterwards the client can use the
     * identifier for a new message. If the store fails, closes the connection and rejects.
     */
    async release(clientId: string, packetId: number): Promise<void> {
      const session = local.connected(clientId)
      if (!session) return
      try {
        if (!session.clean) await store.commit([{ del: incomingPrefix(clientId) + packetId }])
        session.incoming.delete(packetId)
      } catch (error) {
        metrics.storeFailures.inc()
        log.error({ err: error, clientId }, 'release of a QoS 2 message not stored')
        session.connection?.cut('error', 'release not stored')
        throw error
      }
    },
  }
}
