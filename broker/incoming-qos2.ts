import { hash } from 'node:crypto'
import type { Change, Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { receivingOf, type Session } from './session/session.ts'
import { incomingChange, incomingPrefix } from './session/session-record.ts'

export type Incoming = ReturnType<typeof createIncoming>

/** A QoS 2 message as it arrives. */
interface Arrived {
  topic: string
  payload: Buffer
  packetId: number
}

/**
 * Recognises repeated QoS 2 messages of clients by the packet identifier, until PUBREL [MQTT-4.3.3-2], and by their
 * content: a client that was killed before PUBREL, and keeps nothing, begins to count anew in the session that is left.
 * Its next message under the same identifier is another one, and PUBREC for it must not be about the earlier one.
 */
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
     * Whether the hub accepts an earlier PUBLISH of the same content with this packet identifier that still waits for
     * PUBREL. A promise: the commit of that PUBLISH is under way. Undefined: no such PUBLISH waits.
     */
    find({ receiving }: Session, arrived: Arrived): true | Promise<boolean> | undefined {
      const { packetId } = arrived
      const waiting = receiving?.incoming.get(packetId)
      const underway = receiving?.processing.get(packetId)
      if (waiting === undefined && underway === undefined) return undefined
      const digest = digestOf(arrived)
      // Earlier releases stored no digest.
      if (waiting === digest || waiting === '') return true
      return underway?.digest === digest ? underway.accepted : undefined
    },

    hasRoom({ receiving }: Session): boolean {
      return !receiving || receiving.incoming.size + receiving.processing.size < window
    },

    /** The changes to store with a message. A clean session ends with its connection, and stores none. */
    changes: (session: Session, arrived: Arrived): readonly Change[] =>
      session.clean ? [] : [incomingChange(session, arrived.packetId, digestOf(arrived))],

    /** Notes a new message whose commit is under way. Resolves with whether the message is accepted. */
    async add(session: Session, arrived: Arrived, accepted: Promise<boolean>): Promise<boolean> {
      const { packetId } = arrived
      const { incoming, processing } = receivingOf(session)
      const underway = { digest: digestOf(arrived), accepted }
      processing.set(packetId, underway)
      try {
        const isAccepted = await accepted
        if (isAccepted) incoming.set(packetId, underway.digest)
        return isAccepted
      } finally {
        if (processing.get(packetId) === underway) processing.delete(packetId)
      }
    },

    /**
     * Stores the release of a packet identifier, before PUBCOMP [MQTT-4.3.3-2]: afterwards the client can use the
     * identifier for a new message. An unknown identifier is released already. False: the store has failed.
     */
    async release(session: Session, packetId: number): Promise<boolean> {
      const { clientId, clean, receiving } = session
      await receiving?.processing.get(packetId)?.accepted.catch(() => undefined)
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

function digestOf({ topic, payload }: Arrived): string {
  return hash('sha256', Buffer.concat([Buffer.from(`${topic}\0`), payload]), 'hex').slice(0, 16)
}
