import type { Change, Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { receivingOf, type Session } from './session/session.ts'
import { incomingChange, incomingPrefix } from './session/session-record.ts'

export type Incoming = ReturnType<typeof createIncoming>

/** Recognises repeated QoS 2 messages of clients by the packet identifier, until PUBREL [MQTT-4.3.3-2]. */
export function createIncoming(parts: {
  store: Store
  /** Maximum number of QoS 2 messages that one client has not released by PUBREL. */
  window: number
  log: Log
  metrics: Metrics
}) {
  const { store, window, log, metrics } = parts

  return {
    window,

    /**
     * Whether the hub accepts an earlier PUBLISH with this packet identifier that still waits for PUBREL. A promise:
     * the commit of that PUBLISH is under way. Undefined: no such PUBLISH waits.
     */
    find({ receiving }: Session, packetId: number): true | Promise<boolean> | undefined {
      return receiving?.incoming.has(packetId) ? true : receiving?.processing.get(packetId)
    },

    hasRoom({ receiving }: Session): boolean {
      return !receiving || receiving.incoming.size + receiving.processing.size < window
    },

    /** The changes to store with a message. A clean session ends with its connection, and stores none. */
    changes: (session: Session, packetId: number): readonly Change[] =>
      session.clean ? [] : [incomingChange(session, packetId)],

    /** Notes a new message whose commit is under way. Resolves with whether the message is accepted. */
    async add(session: Session, packetId: number, accepted: Promise<boolean>): Promise<boolean> {
      const { incoming, processing } = receivingOf(session)
      processing.set(packetId, accepted)
      try {
        const isAccepted = await accepted
        if (isAccepted) incoming.add(packetId)
        return isAccepted
      } finally {
        processing.delete(packetId)
      }
    },

    /**
     * Stores the release of a packet identifier, before PUBCOMP [MQTT-4.3.3-2]: afterwards the client can use the
     * identifier for a new message. An unknown identifier is released already. False: the store has failed.
     */
    async release(session: Session, packetId: number): Promise<boolean> {
      const { clientId, clean, receiving } = session
      await receiving?.processing.get(packetId)?.catch(() => undefined)
      if (!receiving?.incoming.has(packetId)) return true
      try {
        if (!clean) await store.commit([{ del: incomingPrefix(clientId) + packetId }])
        receiving.incoming.delete(packetId)
        return true
      } catch (error) {
        metrics.storeFailures.inc()
        log.error({ err: error, clientId }, 'release of a QoS 2 message not stored')
        return false
      }
    },
  }
}
