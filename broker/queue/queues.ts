import type { Message } from '../../event/message.ts'
import type { Sequences } from '../../store/nodes/sequences.ts'
import { type Change, keepsStored, type Store } from '../../store/store.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { MqttConnection } from '../connection/connection.ts'
import type { Qos } from '../connection/wire.ts'
import { farFutureMs } from '../fanout/retained.ts'
import { isElsewhere, markSent, maxInFlight, type Session } from '../session/session.ts'
import { type QueueEntry, queueEntry } from './queue-entry.ts'
import { bodyChange, bodyKey, entryChange, queueKey, readQueues } from './queue-store.ts'

export type Queues = Awaited<ReturnType<typeof openQueues>>

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
 * The queues of persistent sessions: what was accepted for a client and is not acknowledged by it. They are
 * changed in memory at once; the changes returned are for the caller to commit, or to `revert`.
 */
export async function openQueues(parts: {
  store: Store
  clock: () => number
  sequences: Sequences
  queueLimit: number
  metrics: Metrics
}) {
  const { store, clock, sequences, queueLimit, metrics } = parts
  const isShared = store.watch !== undefined
  const references = new Map<number, number>()
  /** Stored entries of sessions that are not known: not loaded yet, or gone, by client id and sequence. */
  const strays = await readQueues(store)
  for (const entries of strays.values()) for (const sequence of entries.keys()) sequences.heard(sequence)
  /** Planned, and not stored yet: nobody else may send them, or find them missing. */
  const underway = new Set<QueueEntry>()
  const finishedBefore: Change[] = []
  /** Bodies that were let go of by several nodes at once: none of them may have removed them. */
  const abandoned = new Set<number>()

  return {
    plan,
    remove,

    /** Gives a session loaded from the store the queue it had. */
    resume(session: Session): void {
      for (const entry of strays.get(session.clientId)?.values() ?? []) {
        if (!isOf(session, entry)) continue
        const { packetId } = entry
        takeIn(session.clientId, entry.sequence)
        const before = packetId === undefined ? undefined : session.inFlight.get(packetId)
        adopt(session, entry)
        // A node alone uses an identifier again when it was acknowledged, and the store had not heard of that yet.
        if (typeof before === 'object' && !isShared) finishedBefore.push(...remove(session, before))
        if (packetId !== undefined) session.inFlight.set(packetId, entry)
      }
    },

    /**
     * Makes certain which message has which identifier, before a connection repeats them. Of two nodes that had
     * the client one after the other, both may have given the same: then it says nothing, and they are sent anew.
     */
    settleIdentifiers(session: Session): void {
      if (!isShared) return
      const holders = new Map<number, QueueEntry[]>()
      for (const entry of session.queue.values()) {
        if (entry.packetId === undefined) continue
        holders.set(entry.packetId, [...(holders.get(entry.packetId) ?? []), entry])
      }
      session.inFlight.clear()
      for (const [packetId, entries] of holders) {
        // The client has confirmed that it knows this one by it.
        const holder = entries.length === 1 ? entries[0] : entries.find(({ released }) => released)
        if (holder) session.inFlight.set(packetId, holder)
        for (const entry of entries) if (entry !== holder) sendAnew(session, entry, packetId)
      }
    },

    /** Drops stored queues that no session asked for; call once, when all sessions are loaded. */
    async dropOrphans(): Promise<void> {
      const changes: Change[] = [...finishedBefore]
      for (const [clientId, entries] of strays) {
        for (const sequence of entries.keys()) changes.push({ del: queueKey(clientId, sequence) })
      }
      for await (const [key] of store.range('body/')) {
        if (!references.has(Number(key.slice('body/'.length)))) changes.push({ del: key })
      }
      strays.clear()
      await store.commit(changes)
    },

    bodyChange,

    /** Takes back what was planned when it could not be stored. */
    revert(planned: readonly Planned[]): void {
      for (const { session, entry, replaced } of planned) {
        underway.delete(entry)
        forget(session, entry)
        for (const before of replaced) adopt(session, before)
        if (replaced.length > 0) sortQueue(session)
      }
    },

    /** What was planned is stored. */
    stored(entry: QueueEntry): void {
      underway.delete(entry)
    },

    /** The next entries to send, in order; those behind one that is not stored yet wait for it. */
    sendable(session: Session, count: number): QueueEntry[] {
      const entries = waitingEntries(session, count)
      const first = entries.findIndex((entry) => underway.has(entry))
      return first < 0 ? entries : entries.slice(0, first)
    },

    /** Takes over what the store has for a session: another node had it meanwhile. */
    async reload(session: Session): Promise<void> {
      const { clientId } = session
      const stored = (await readQueues(store, clientId)).get(clientId)
      for (const entry of stored?.values() ?? []) adoptStored(session, entry)
      sortQueue(session)
    },

    adoptStored,

    /** An entry that another node has removed. */
    forgetStored(session: Session, sequence: number): void {
      const known = session.queue.get(sequence)
      if (known && forget(session, known).length > 0) abandoned.add(sequence)
    },

    /** The change that removes an entry that was never taken in. Entries that follow may refer to its body. */
    refuse(clientId: string, sequence: number): Change[] {
      abandoned.add(sequence)
      return [{ del: queueKey(clientId, sequence) }]
    },

    keepStray,
    strayRemoved: takeIn,
    bodyRemoved: (sequence: number): void => void abandoned.delete(sequence),

    /** The changes that remove what belongs to nobody, and nobody has removed since the last time. */
    abandonedChanges(): Change[] {
      const changes: Change[] = []
      for (const [clientId, entries] of strays) {
        for (const sequence of entries.keys()) {
          changes.push({ del: queueKey(clientId, sequence) })
          abandoned.add(sequence)
        }
      }
      strays.clear()
      for (const sequence of abandoned)
        if (!references.has(sequence)) changes.push({ del: bodyKey(sequence) })
      abandoned.clear()
      return changes
    },

    /**
     * Forgets a queue that another node has removed, as far as that knew it: what was on its way into the store
     * at that moment is left there.
     */
    forgetAll(session: Session): void {
      for (const entry of [...session.queue.values()]) {
        keepStray(session.clientId, entry)
        if (forget(session, entry).length > 0) abandoned.add(entry.sequence)
      }
      session.inFlight.clear()
    },

    /** Forgets the whole queue; the changes that remove it from the store. */
    clear(session: Session): Change[] {
      const changes = [...session.queue.values()].flatMap((entry) => remove(session, entry))
      session.inFlight.clear()
      return changes
    },
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
    const entry = queueEntry(session, message, sequence, qos, retain)
    const replaced: QueueEntry[] = []
    // Only what is offline is conflated: who is connected gets every event, as fast as it acknowledges.
    const conflates = entry.keep === 'latest' && session.connection === undefined && !isElsewhere(session)
    const before = conflates ? session.latest.get(entry.topic) : undefined
    if (before) {
      const order = { time: entry.time, horizon: clock() + farFutureMs }
      if (keepsStored(before.time, order)) return undefined
      replaced.push(before)
    }
    replaced.push(...overLimit(session, replaced.length))
    const changes = replaced.flatMap((other) => remove(session, other))
    adopt(session, entry)
    underway.add(entry)
    const sendable = session.waiting === 1 && !session.flushing && session.inFlight.size < maxInFlight
    const connection = sendable ? session.connection : undefined
    if (connection) markSent(session, entry)
    changes.push(entryChange(session, entry))
    return { planned: { session, entry, connection, replaced }, changes }
  }

  /** An entry as another node has stored it. True: it is new, and waits. */
  function adoptStored(session: Session, stored: QueueEntry): boolean {
    if (!isOf(session, stored)) {
      keepStray(session.clientId, stored)
      return false
    }
    const known = session.queue.get(stored.sequence)
    // Who has the client gives the identifiers: one that comes from elsewhere is of the time before.
    if (known && session.connection) return false
    const { packetId } = stored
    const entry = known ?? { ...stored, packetId: undefined, released: false }
    if (!known) adopt(session, entry)
    if (packetId !== undefined) {
      identify(session, entry, packetId)
      entry.released = stored.released
    }
    return !known && packetId === undefined
  }

  function adopt(session: Session, entry: QueueEntry): void {
    session.queue.set(entry.sequence, entry)
    references.set(entry.sequence, (references.get(entry.sequence) ?? 0) + 1)
    if (entry.packetId !== undefined) {
      session.inFlight.set(entry.packetId, entry)
      return
    }
    session.waiting++
    const latest = session.latest.get(entry.topic)
    const isLatest = latest === undefined || latest.sequence < entry.sequence
    if (entry.keep === 'latest' && isLatest) session.latest.set(entry.topic, entry)
  }

  /** An entry of no session that this node knows. */
  function keepStray(clientId: string, entry: QueueEntry): void {
    const entries = strays.get(clientId)
    if (entries) entries.set(entry.sequence, entry)
    else strays.set(clientId, new Map([[entry.sequence, entry]]))
  }

  /** It has a session, or is gone. */
  function takeIn(clientId: string, sequence: number): void {
    const entries = strays.get(clientId)
    if (entries?.delete(sequence) && entries.size === 0) strays.delete(clientId)
  }

  /** Notes the identifier that another node has sent an entry with. */
  function identify(session: Session, entry: QueueEntry, packetId: number): void {
    if (entry.packetId === packetId) return
    if (entry.packetId === undefined) {
      session.waiting--
      if (session.latest.get(entry.topic) === entry) session.latest.delete(entry.topic)
    } else if (session.inFlight.get(entry.packetId) === entry) session.inFlight.delete(entry.packetId)
    entry.packetId = packetId
    session.inFlight.set(packetId, entry)
  }

  /** Under another identifier: the client may have taken this one for a message it knows. */
  function sendAnew(session: Session, entry: QueueEntry, packetId: number): void {
    entry.packetId = undefined
    session.waiting++
    session.lastPacketId = Math.max(session.lastPacketId, packetId)
  }

  /** What was taken back stands at the end, and belongs where it was. */
  function sortQueue(session: Session): void {
    const entries = [...session.queue.values()].sort((a, b) => a.sequence - b.sequence)
    session.queue.clear()
    for (const entry of entries) session.queue.set(entry.sequence, entry)
  }

  /** The oldest waiting entries that must go for one more to fit, when `leaving` go anyway. */
  function overLimit(session: Session, leaving: number): QueueEntry[] {
    const count = session.waiting - leaving + 1 - queueLimit
    const entries = count > 0 ? waitingEntries(session, count) : []
    session.dropped += entries.length
    metrics.messagesDropped.inc({ reason: 'queue-limit' }, entries.length)
    return entries
  }

  function waitingEntries(session: Session, count: number): QueueEntry[] {
    const entries: QueueEntry[] = []
    for (const entry of session.queue.values()) {
      if (entries.length >= count) break
      if (entry.packetId === undefined) entries.push(entry)
    }
    return entries
  }

  /** Takes an entry out in memory; the changes take it out of the store. */
  function remove(session: Session, entry: QueueEntry): Change[] {
    const references = forget(session, entry)
    return [{ del: queueKey(session.clientId, entry.sequence) }, ...references]
  }

  function forget(session: Session, entry: QueueEntry): Change[] {
    if (!session.queue.delete(entry.sequence)) return []
    if (entry.packetId === undefined) session.waiting--
    else if (session.inFlight.get(entry.packetId) === entry) session.inFlight.delete(entry.packetId)
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

/** Whether the session is the one it was queued for, and not one of the same client id before or after that. */
function isOf({ clean, createdAt }: Session, { session }: QueueEntry): boolean {
  return !clean && (session === undefined || session === createdAt)
}
