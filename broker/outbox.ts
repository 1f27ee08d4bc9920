import type { Message } from '../event/message.ts'
import { type Change, keepsStored, type Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { MqttConnection } from './connection.ts'
import { createFinished } from './finished.ts'
import {
  bodyChange,
  bodyKey,
  entryChange,
  queueKey,
  readBody,
  readQueues,
  sequencesPerMs,
} from './queue-store.ts'
import { farFutureMs } from './retained.ts'
import {
  inFlightWindow,
  markSent,
  maxInFlight,
  type QueueEntry,
  queueEntry,
  type Session,
} from './session.ts'
import { encodePubrel, type Publish, packetType, type Qos } from './wire.ts'

export type Outbox = Awaited<ReturnType<typeof openOutbox>>

/** A message taken into a session's queue, not stored yet. */
export interface Planned {
  session: Session
  entry: QueueEntry
  /** Where it goes at once; undefined: it waits for its turn. */
  connection: MqttConnection | undefined
  /** Waiting entries it took the place of. */
  replaced: readonly QueueEntry[]
}

/**
 * The queues of persistent sessions: what was accepted for a client and is not acknowledged by it.
 *
 * A queue entry is stored in the commit of the event itself, with its packet identifier when the client
 * can have it at once, so that a crash at any point leads to a redelivery with the same identifier
 * [MQTT-4.4.0-1]. Payloads are stored once per message, however many queues refer to them.
 */
export async function openOutbox(parts: {
  store: Store
  clock: () => number
  queueLimit: number
  mayReceive: (session: Session, topic: string) => boolean
  log: Log
  metrics: Metrics
}) {
  const { store, clock, queueLimit, mayReceive, log, metrics } = parts
  const references = new Map<number, number>()
  const restored = await readQueues(store)
  const finished = createFinished(store, log)
  let lastSequence = 0

  return {
    nextSequence,

    /** Gives a session loaded from the store the queue it had. */
    resume(session: Session): void {
      for (const entry of restored.get(session.clientId) ?? []) adopt(session, entry)
      restored.delete(session.clientId)
    },

    /** Drops stored queues that no session asked for; call once, when all sessions are loaded. */
    async dropOrphans(): Promise<void> {
      const changes: Change[] = []
      for (const [clientId, entries] of restored) {
        for (const { sequence } of entries)
          changes.push({ del: queueKey(clientId, sequence) }, ...release(sequence))
      }
      for await (const [key] of store.range('body/')) {
        if (!references.has(Number(key.slice('body/'.length)))) changes.push({ del: key })
      }
      restored.clear()
      await store.commit(changes)
    },

    plan,
    bodyChange,

    /** Takes back what was planned when it could not be stored. */
    revert(planned: readonly Planned[]): void {
      for (const { session, entry, replaced } of planned) {
        forget(session, entry)
        for (const before of replaced) adopt(session, before)
      }
    },

    /** Sends what was planned, now that it is stored. */
    sendPlanned({ session, entry, connection }: Planned, publish: Publish): void {
      entry.stored = true
      if (entry.packetId === undefined) {
        void flush(session)
        return
      }
      if (!session.connection || session.inFlight.get(entry.packetId) !== entry) return
      // Another connection than planned has already been sent the in-flight messages, or is about to be.
      const dup = session.connection !== connection
      const flags = { retain: entry.retain, dup }
      session.connection.send(publish.packet(entry.qos, flags, entry.packetId))
    },

    /** PUBACK, PUBREC or PUBCOMP of a client. */
    acknowledge,

    /** The session has a connection: repeats what is in flight, in order, then sends what waits. */
    async connected(session: Session): Promise<void> {
      session.flushing = true
      try {
        await redeliver(session)
      } finally {
        session.flushing = false
      }
      await flush(session)
    },

    /** Forgets the whole queue; the changes that remove it from the store. */
    clear(session: Session): Change[] {
      const changes = [...session.queue.values()].flatMap((entry) => remove(session, entry))
      session.inFlight.clear()
      return changes
    },

    finished,

    /** Stores the last acknowledgements. */
    async close(): Promise<void> {
      await finished.flush()
    },
  }

  function nextSequence(): number {
    // Sorts by time across restarts: what a queue holds from before comes first.
    lastSequence = Math.max(lastSequence + 1, clock() * sequencesPerMs)
    return lastSequence
  }

  /**
   * Takes a message into a session's queue in memory; the changes store it. Undefined when a newer one
   * for the topic waits already (service.md §6.3: last value wins).
   */
  function plan(
    session: Session,
    message: Message,
    sequence: number,
    qos: Qos,
    retain: boolean,
  ): { planned: Planned; changes: Change[] } | undefined {
    const entry = queueEntry(message, sequence, qos, retain)
    const replaced: QueueEntry[] = []
    // Only what is offline is conflated: who is connected gets every event, as fast as it acknowledges.
    const conflates = entry.keep === 'latest' && session.connection === undefined
    const before = conflates ? session.latest.get(entry.topic) : undefined
    if (before) {
      const order = { time: entry.time, horizon: clock() + farFutureMs }
      if (keepsStored(before.time, order)) return undefined
      replaced.push(before)
    }
    replaced.push(...overLimit(session, replaced.length))
    const changes = replaced.flatMap((other) => remove(session, other))
    adopt(session, entry)
    const sendable = session.waiting === 1 && !session.flushing && session.inFlight.size < maxInFlight
    const connection = sendable ? session.connection : undefined
    if (connection) markSent(session, entry)
    changes.push(entryChange(session, entry))
    return { planned: { session, entry, connection, replaced }, changes }
  }

  function adopt(session: Session, entry: QueueEntry): void {
    session.queue.set(entry.sequence, entry)
    references.set(entry.sequence, (references.get(entry.sequence) ?? 0) + 1)
    if (entry.packetId !== undefined) {
      session.inFlight.set(entry.packetId, entry)
      return
    }
    session.waiting++
    if (entry.keep === 'latest') session.latest.set(entry.topic, entry)
  }

  /** The oldest waiting entries that must go for one more to fit, when `leaving` go anyway. */
  function overLimit(session: Session, leaving: number): QueueEntry[] {
    const count = session.waiting - leaving + 1 - queueLimit
    const entries = count > 0 ? waitingEntries(session, count) : []
    session.dropped += entries.length
    metrics.messagesDropped.inc({ reason: 'queue-limit' }, entries.length)
    return entries
  }

  function acknowledge(session: Session, type: number, packetId: number): void {
    const flight = session.inFlight.get(packetId)
    if (flight === undefined) {
      // The release of a message this side has forgotten still has to be answered [MQTT-4.3.3-1].
      if (type === packetType.pubrec) session.connection?.send(encodePubrel(packetId))
      return
    }
    if (typeof flight === 'string') {
      if (type !== packetType.pubrec) {
        session.inFlight.delete(packetId)
        return
      }
      session.inFlight.set(packetId, 'released')
      session.connection?.send(encodePubrel(packetId))
      return
    }
    if (type === packetType.pubrec && flight.qos === 2) {
      void releaseQos2(session, flight, packetId)
      return
    }
    if (type !== (flight.qos === 2 ? packetType.pubcomp : packetType.puback)) return
    finished.add(remove(session, flight))
    void flush(session)
  }

  /** The received state is stored before PUBREL: after it the client may forget the message [MQTT-4.3.3-1]. */
  async function releaseQos2(session: Session, entry: QueueEntry, packetId: number): Promise<void> {
    entry.released = true
    try {
      await store.commit([entryChange(session, entry)])
      session.connection?.send(encodePubrel(packetId))
    } catch (error) {
      failed(session, error)
    }
  }

  async function redeliver(session: Session): Promise<void> {
    const { connection } = session
    if (!connection) return
    for (const entry of [...session.inFlight.values()]) {
      if (typeof entry === 'string' || entry.packetId === undefined) continue
      if (entry.released) {
        connection.send(encodePubrel(entry.packetId))
        continue
      }
      const publish = await readBody(store, entry)
      await connection.paced()
      if (session.connection !== connection) return
      // Without a body its commit is still under way, and sends it.
      if (publish && allowed(session, entry)) {
        connection.send(publish.packet(entry.qos, { retain: entry.retain, dup: true }, entry.packetId))
      }
    }
  }

  /** Sends what waits, as far as the window and the network allow; acknowledgements call it again. */
  async function flush(session: Session): Promise<void> {
    if (session.flushing || session.waiting === 0) return
    session.flushing = true
    try {
      while (session.connection && session.waiting > 0 && session.inFlight.size < inFlightWindow) {
        const { connection } = session
        await connection.paced()
        const entries = sendableEntries(session, inFlightWindow - session.inFlight.size)
        if (entries.length === 0) return // the commit under way calls again
        const publishes = await Promise.all(entries.map((entry) => readBody(store, entry)))
        if (session.connection !== connection) return
        const changes: Change[] = []
        const sending: [QueueEntry, Publish][] = []
        for (const [index, entry] of entries.entries()) {
          if (session.queue.get(entry.sequence) !== entry) continue // replaced meanwhile
          const publish = publishes[index]
          if (!publish || !allowed(session, entry) || isOver(entry)) {
            changes.push(...remove(session, entry))
            session.dropped++
            metrics.messagesDropped.inc({ reason: publish ? 'expired' : 'lost' })
            continue
          }
          markSent(session, entry)
          changes.push(entryChange(session, entry))
          sending.push([entry, publish])
        }
        await store.commit(changes)
        for (const [entry, publish] of sending) {
          if (session.connection !== connection) return
          await connection.paced()
          connection.send(publish.packet(entry.qos, { retain: entry.retain }, entry.packetId))
        }
      }
    } catch (error) {
      failed(session, error)
    } finally {
      session.flushing = false
    }
  }

  /** The oldest waiting entries up to the first whose commit is under way, so that the order stays. */
  function sendableEntries(session: Session, count: number): QueueEntry[] {
    const entries = waitingEntries(session, count)
    const unstored = entries.findIndex((entry) => !entry.stored)
    return unstored < 0 ? entries : entries.slice(0, unstored)
  }

  function waitingEntries(session: Session, count: number): QueueEntry[] {
    const entries: QueueEntry[] = []
    for (const entry of session.queue.values()) {
      if (entries.length >= count) break
      if (entry.packetId === undefined) entries.push(entry)
    }
    return entries
  }

  function isOver(entry: QueueEntry): boolean {
    return entry.expires !== undefined && entry.expires <= clock()
  }

  function allowed(session: Session, entry: QueueEntry): boolean {
    return mayReceive(session, entry.topic)
  }

  /** A session that cannot be stored gets no further: its client reconnects and finds what was stored. */
  function failed(session: Session, error: unknown): void {
    metrics.storeFailures.inc()
    log.error({ err: error, clientId: session.clientId }, 'queue not stored')
    session.connection?.cut('error', 'queue not stored')
  }

  /** Takes an entry out in memory; the changes take it out of the store. */
  function remove(session: Session, entry: QueueEntry): Change[] {
    const references = forget(session, entry)
    return [{ del: queueKey(session.clientId, entry.sequence) }, ...references]
  }

  function forget(session: Session, entry: QueueEntry): Change[] {
    if (!session.queue.delete(entry.sequence)) return []
    if (entry.packetId === undefined) session.waiting--
    else session.inFlight.delete(entry.packetId)
    if (session.latest.get(entry.topic) === entry) session.latest.delete(entry.topic)
    return release(entry.sequence)
  }

  function release(sequence: number): Change[] {
    const left = (references.get(sequence) ?? 1) - 1
    if (left > 0) {
      references.set(sequence, left)
      return []
    }
    references.delete(sequence)
    return [{ del: bodyKey(sequence) }]
  }
}
