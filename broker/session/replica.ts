import { filterMatches } from '../../event/topic.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import { slotIn } from '../../store/nodes/sequences.ts'
import type { Store } from '../../store/store.ts'
import { keyOf } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Outbox } from '../queue/outbox.ts'
import type { QueueEntry } from '../queue/queue-entry.ts'
import { placeOfEntry, readBodyOf, readEntry } from '../queue/queue-store.ts'
import { detach, isElsewhere, type Session } from './session.ts'
import { clientIdOf, identityOf, incomingPrefix, readRecord, recordPrefix } from './session-store.ts'
import type { Sessions } from './sessions.ts'

/**
 * Does in memory what other nodes did to sessions and their queues, in the order of the commits. What they
 * queue for a client that is connected here is sent from here.
 */
export function followSessions(parts: {
  store: Store
  sessions: Sessions
  outbox: Outbox
  nodes: Nodes
  log: Log
}): void {
  const { store, sessions, outbox, nodes, log } = parts

  store.watch?.('body/', (change) => {
    if ('put' in change)
      outbox.bodyStored(numberIn(change.put), readBodyOf(change.value), change.value.length)
    else if ('del' in change) outbox.bodyRemoved(numberIn(change.del))
  })

  store.watch?.('queue/', (change) => {
    if ('tell' in change) return
    const { clientId, sequence } = placeOfEntry(keyOf(change))
    const session = sessions.get(clientId)
    if ('del' in change) {
      outbox.strayRemoved(clientId, sequence)
      if (session) outbox.forgetStored(session, sequence)
      return
    }
    const entry = readEntry(change.value)
    if (!session) outbox.keepStray(clientId, entry)
    else if (!isWanted(session, entry)) outbox.refuse(clientId, sequence)
    else outbox.adoptStored(session, isHeldElsewhere(session) ? entry : unsent(entry))
  })

  store.watch?.(incomingPrefix, (change) => {
    const session = sessions.get(clientIdOf(keyOf(change)))
    const packetId = Number(keyOf(change).split('/')[2])
    if (!session || 'tell' in change) return
    if ('del' in change) session.incoming.delete(packetId)
    else if (change.value.toString() === identityOf(session)) {
      session.incoming.set(packetId, outbox.nextSequence())
    }
  })

  store.watch?.(recordPrefix, (change) => {
    if ('put' in change) stored(change.value)
    else if ('del' in change) removed(change.del)
  })

  nodes.onChange(() => settle(sessions.releaseGone()))
  nodes.onReturn(() => settle(sessions.claimAgain([...sessions.values()])))

  function stored(value: Buffer): void {
    const record = readRecord(value)
    const session = sessions.get(record.clientId)
    // Where it was first, our log-in is refused, and looks again. Events are queued for its filters from now on.
    if (session && sessions.isClaiming(session)) {
      if (record.createdAt === session.createdAt) sessions.adoptFilters(session, record)
      return
    }
    if (session?.owner) {
      session.storedVersion = record.version
      // An attempt of this node that was given up.
      if (record.node === nodes.self) return
      // Of a node that takes this one for dead. When it is back, it logs in all of them again.
      if (record.node === undefined) {
        if (!isOut()) settle(sessions.claimAgain([session]))
        return
      }
      giveUp(session)
    }
    sessions.adopt(record)
  }

  function removed(key: string): void {
    const session = sessions.get(clientIdOf(key))
    if (!session || sessions.isClaiming(session)) return
    session.storedVersion = undefined
    // A node that takes this one for dead ends its clean sessions. They go on when it is back.
    if (session.owner && session.clean && isOut()) return
    if (session.owner) giveUp(session)
    sessions.forget(session)
  }

  /** The node that queued it may not have heard yet that the client has unsubscribed [MQTT-3.10.4-2]. */
  function isWanted(session: Session, entry: QueueEntry): boolean {
    const { sequence, topic } = entry
    // One of an earlier session with this client id is kept apart.
    if (session.queue.has(sequence) || entry.session !== session.createdAt) return true
    if (sessions.isClaiming(session)) return true
    // The node of the client knows its filters first, also those that are not stored yet.
    const { node } = session
    if (isElsewhere(session) && node !== undefined && nodes.slotOf(node) === slotIn(sequence)) return true
    // A filter that was removed here applies until that is stored.
    if (session.version !== session.storedVersion) return true
    return [...session.subscriptions.keys()].some((filter) => filterMatches(filter, topic))
  }

  /** Another node has the client, or had it until this one takes it over. */
  function isHeldElsewhere(session: Session): boolean {
    return isElsewhere(session) || sessions.isClaiming(session)
  }

  /** The others took this node for dead. */
  function isOut(): boolean {
    return !nodes.isLiving(nodes.self)
  }

  /** Another node has the client now [MQTT-3.1.4-2], or has ended its session. */
  function giveUp(session: Session): void {
    const { owner } = session
    detach(session)
    owner?.cut('takeover', 'another connection with the same client id')
  }

  function settle(work: Promise<unknown>): void {
    work.catch((err: unknown) => log.error({ err }, 'sessions not stored'))
  }
}

/** A node that does not have the client can have sent nothing: it has not heard that the client is gone. */
function unsent(entry: QueueEntry): QueueEntry {
  return { ...entry, packetId: undefined, released: false }
}

function numberIn(key: string): number {
  return Number(key.split('/')[1])
}
