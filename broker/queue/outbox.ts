import { setTimeout as delay } from 'node:timers/promises'
import type { Sequences } from '../../store/nodes/sequences.ts'
import type { Change, Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { MqttConnection } from '../connection/connection.ts'
import { encodePubrel, type Publish, packetType } from '../connection/wire.ts'
import { inFlightWindow, markSent, type Session } from '../session/session.ts'
import { createBodyCache } from './body-cache.ts'
import { createFinished } from './finished.ts'
import type { QueueEntry } from './queue-entry.ts'
import { entryChange, queueKey, readBody } from './queue-store.ts'
import { openQueues, type Planned } from './queues.ts'

/** Between two attempts to store what a connected client is to be sent, milliseconds. */
const retryMs = 500

export type Outbox = Awaited<ReturnType<typeof openOutbox>>

/**
 * Sends the queues of persistent sessions, and hears what became of it.
 *
 * A queue entry is stored in the commit of the event itself, with its packet identifier when the client
 * can have it at once, so that a crash at any point leads to a redelivery with the same identifier
 * [MQTT-4.4.0-1]. Payloads are stored once per message, however many queues refer to them.
 */
export async function openOutbox(parts: {
  store: Store
  clock: () => number
  sequences: Sequences
  queueLimit: number
  mayReceive: (session: Session, topic: string) => boolean
  log: Log
  metrics: Metrics
}) {
  const { store, clock, sequences, mayReceive, log, metrics } = parts
  const queues = await openQueues(parts)
  const finished = createFinished({ store, log, metrics })
  const bodies = createBodyCache()
  /** PUBREC received, and not stored yet. */
  const releasing = new Set<QueueEntry>()

  return {
    nextSequence: sequences.next,
    plan: queues.plan,
    revert: queues.revert,
    bodyChange: queues.bodyChange,
    resume: queues.resume,
    reload: queues.reload,
    dropOrphans: queues.dropOrphans,
    clear: queues.clear,
    forgetAll: queues.forgetAll,
    forgetStored: queues.forgetStored,
    keepStray: queues.keepStray,
    strayRemoved: queues.strayRemoved,
    abandonedChanges: queues.abandonedChanges,

    /** Another node has stored a body; its entries follow, and need not ask the store for it. */
    bodyStored(sequence: number, publish: Publish, bytes: number): void {
      sequences.heard(sequence)
      bodies.keep(sequence, publish, bytes)
    },

    /** Removes an entry that another node has stored for a session, and should not have. */
    refuse(clientId: string, sequence: number): void {
      finished.add(queues.refuse(clientId, sequence))
    },

    bodyRemoved(sequence: number): void {
      bodies.forget(sequence)
      queues.bodyRemoved(sequence)
    },

    /** Another node has stored an entry. */
    adoptStored(session: Session, entry: QueueEntry): void {
      if (queues.adoptStored(session, entry) && session.connection) void flush(session)
    },

    /** Sends what was planned, now that it is stored. */
    sendPlanned({ session, entry, connection }: Planned, publish: Publish): void {
      queues.stored(entry)
      if (entry.packetId === undefined) {
        void flush(session)
        return
      }
      if (!session.connection || session.inFlight.get(entry.packetId) !== entry) return
      // Another connection than planned has already been sent the in-flight messages, or is about to be.
      const dup = session.connection !== connection
      const flags = { retain: entry.retain, dup }
      session.connection.deliver(publish, entry.qos, flags, entry.packetId)
    },

    /** Takes out what was planned and stored, and should not be sent. */
    withdraw({ session, entry }: Planned): void {
      queues.stored(entry)
      finished.add(queues.remove(session, entry))
    },

    /** PUBACK, PUBREC or PUBCOMP of a client. */
    acknowledge,

    /** The session has a connection: repeats what is in flight, in order, then sends what waits. Never rejects. */
    async connected(session: Session): Promise<void> {
      const run = {}
      session.flushing = run
      queues.settleIdentifiers(session)
      await redeliver(session)
      // The run of a newer connection is not ended by the one before.
      if (session.flushing === run) session.flushing = undefined
      await flush(session)
    },

    finished,

    /** Stores the last acknowledgements. */
    async close(): Promise<void> {
      await finished.close()
    },
  }

  function acknowledge(session: Session, type: number, packetId: number): void {
    const flight = session.inFlight.get(packetId)
    if (flight === 'qos1' && type === packetType.puback) {
      session.inFlight.delete(packetId)
      return
    }
    if (flight === undefined) {
      // The release of a message this side has forgotten still has to be answered [MQTT-4.3.3-1].
      if (type === packetType.pubrec) session.connection?.send(encodePubrel(packetId))
      return
    }
    if (!fits(flight, type)) {
      session.connection?.cut('protocol', `packet type ${type} does not acknowledge message ${packetId}`)
      return
    }
    if (typeof flight === 'object') {
      if (type === packetType.pubrec) {
        void releaseQos2(session, flight, packetId)
        return
      }
      finished.add(queues.remove(session, flight))
      void flush(session)
      return
    }
    if (type === packetType.pubrec) {
      session.inFlight.set(packetId, 'released')
      session.connection?.send(encodePubrel(packetId))
      return
    }
    session.inFlight.delete(packetId)
  }

  /** The received state is stored before PUBREL: after it the client may forget the message [MQTT-4.3.3-1]. */
  async function releaseQos2(session: Session, entry: QueueEntry, packetId: number): Promise<void> {
    if (releasing.has(entry)) return
    const wasReleased = entry.released
    const { connection } = session
    entry.released = true
    releasing.add(entry)
    const stored = await insist(session, connection, () => store.commit([entryChange(session, entry)]))
    releasing.delete(entry)
    dropBroughtBack(session, entry)
    if (stored) session.connection?.send(encodePubrel(packetId))
    else entry.released = wasReleased
  }

  /** Another node took the entry away before a commit of this one, which has brought it back. */
  function dropBroughtBack(session: Session, { sequence }: QueueEntry): void {
    if (!session.queue.has(sequence)) finished.add([{ del: queueKey(session.clientId, sequence) }])
  }

  async function redeliver(session: Session): Promise<void> {
    const { connection } = session
    if (!connection) return
    for (const entry of [...session.inFlight.storedEntries()]) {
      if (entry.packetId === undefined) continue
      if (entry.released) {
        if (!releasing.has(entry)) connection.send(encodePubrel(entry.packetId))
        continue
      }
      const read = await insist(session, connection, () => bodyOf(entry))
      await connection.paced()
      if (!read || session.connection !== connection) return
      const publish = read.result
      // Without a body its commit is still under way, and sends it; or it was acknowledged meanwhile.
      if (!publish || session.inFlight.get(entry.packetId) !== entry) continue
      if (allowed(session, entry)) {
        connection.deliver(publish, entry.qos, { retain: entry.retain, dup: true }, entry.packetId)
      }
    }
  }

  /** Sends what waits, as far as the window and the network allow; acknowledgements call it again. Never rejects. */
  async function flush(session: Session): Promise<void> {
    if (session.flushing || session.waiting === 0) return
    const run = {}
    session.flushing = run
    const { connection } = session
    try {
      while (connection?.isOpen && session.connection === connection) {
        await connection.paced()
        if (session.inFlight.size >= inFlightWindow) return
        const entries = queues.sendable(session, inFlightWindow - session.inFlight.size)
        if (entries.length === 0) return
        const read = await insist(session, connection, () => Promise.all(entries.map(bodyOf)))
        if (!read || session.connection !== connection) return
        const changes: Change[] = []
        const sending: [QueueEntry, Publish][] = []
        for (const [index, entry] of entries.entries()) {
          if (session.queue.get(entry.sequence) !== entry) continue // replaced meanwhile
          const publish = read.result[index]
          if (!publish || !allowed(session, entry) || isOver(entry)) {
            finished.add(queues.remove(session, entry))
            session.dropped++
            metrics.messagesDropped.inc({ reason: publish ? 'expired' : 'lost' })
            continue
          }
          markSent(session, entry)
          changes.push(entryChange(session, entry))
          sending.push([entry, publish])
        }
        if (!(await insist(session, connection, () => store.commit(changes)))) return
        for (const [entry] of sending) dropBroughtBack(session, entry)
        for (const [entry, publish] of sending) {
          if (session.connection !== connection) return
          if (session.queue.get(entry.sequence) !== entry) continue
          await connection.paced()
          connection.deliver(publish, entry.qos, { retain: entry.retain }, entry.packetId)
        }
      }
    } finally {
      if (session.flushing === run) session.flushing = undefined
    }
  }

  /**
   * As often as it takes while the client is there: it cannot help, and would only come back and wait. Undefined:
   * it is gone. Never rejects.
   */
  async function insist<T>(
    session: Session,
    connection: MqttConnection | undefined,
    attempt: () => Promise<T>,
  ): Promise<{ result: T } | undefined> {
    for (;;) {
      try {
        return { result: await attempt() }
      } catch (err) {
        metrics.storeFailures.inc()
        log.error({ err, clientId: session.clientId }, 'queue not sent yet')
      }
      await delay(retryMs, undefined, { ref: false })
      if (!connection?.isOpen || session.connection !== connection) return undefined
    }
  }

  async function bodyOf(entry: QueueEntry): Promise<Publish | undefined> {
    return bodies.get(entry.sequence) ?? readBody(store, entry)
  }

  function isOver(entry: QueueEntry): boolean {
    return entry.expires !== undefined && entry.expires <= clock()
  }

  function allowed(session: Session, entry: QueueEntry): boolean {
    return mayReceive(session, entry.topic)
  }
}

/** Whether this packet is the next word about the message; any other breaks the protocol [MQTT-4.8.0-1]. */
function fits(flight: QueueEntry | 'qos1' | 'qos2' | 'released', type: number): boolean {
  const released = typeof flight === 'object' ? flight.released : flight === 'released'
  const qos1 = typeof flight === 'object' ? flight.qos === 1 : flight === 'qos1'
  if (qos1) return type === packetType.puback
  // A repeated PUBREC asks for the PUBREL again.
  return type === packetType.pubrec || (type === packetType.pubcomp && released)
}
