import { ConditionFailed, type Store } from '../../store/store.ts'
import type { MqttConnection } from '../connection/connection.ts'
import type { Reading } from '../fanout/reading.ts'
import type { SessionsHere } from './here.ts'
import type { KnownSessions } from './known-sessions.ts'
import type { Progress } from './progress.ts'
import type { Session } from './session.ts'
import type { Records, SessionRecord } from './session-record.ts'
import { eachOf, type StoredSessions } from './stored-sessions.ts'

export type Sessions = ReturnType<typeof createSessions>

/** Maximum number of tries of one removal: another commit may store the session meanwhile. */
const maxTries = 5

/**
 * The sessions of the clients that are connected to this node. If another node claims a session that ends here, the
 * store decides.
 */
export function createSessions(parts: {
  known: KnownSessions
  here: SessionsHere
  records: Records
  stored: StoredSessions
  ended: EndedSessions
  reading: Reading
}) {
  const { known, here, records, stored, ended, reading } = parts
  const { connected, claiming, leaving } = here

  known.onChanged((clientId, record) => {
    const session = connected.get(clientId)
    if (claiming.has(clientId)) return
    if (session) changedElsewhere(session, record)
    else if (record && records.isOwn(record)) {
      // A commit without an answer was applied after all: the record must be corrected.
      const left = leaving.get(clientId)
      if (left) left.storedVersion = record.version
      else stored.repair(clientId)
    } else leaving.delete(clientId)
  })

  return {
    /** The session of a client that is connected here. */
    get: (clientId: string): Session | undefined => connected.get(clientId),
    values: () => connected.values(),
    ...ended,

    /**
     * Call it when the connection has ended. A clean session then ends [MQTT-3.1.2-6], a persistent session is stored.
     */
    async release(session: Session, owner: MqttConnection): Promise<void> {
      if (session.owner !== owner) return
      if (!session.clean) reading.end(session)
      here.exit(session)
      void here.keepReceiving(session)
      here.leave(session)
      known.goOffline(session)
      if (!session.clean) return stored.store(session)
      const record = known.get(session.clientId)
      if (record) await stored.remove(record)
    },

    /** Ends a session whose client got no CONNACK. */
    async giveUp({ clientId }: Session): Promise<void> {
      try {
        await drop(clientId)
      } catch (error) {
        // Another node has claimed the session meanwhile.
        if (!(error instanceof ConditionFailed)) throw error
      }
    },

    /** Stores the sessions again, after other nodes took this node for dead. */
    async claimAgain(): Promise<void> {
      await eachOf([...connected.values()].filter(records.isStored), stored.store)
    },

    /** Removes a session with all its messages. The caller closes the connection. False: there is no such session. */
    drop,
  }

  async function drop(clientId: string): Promise<boolean> {
    const session = connected.get(clientId)
    if (session) here.exit(session)
    here.forget(clientId)
    let record = known.get(clientId)
    if (!session && !record) return false
    for (let tries = 1; record; tries++) {
      try {
        await stored.remove(record)
        return true
      } catch (error) {
        if (!(error instanceof ConditionFailed) || tries >= maxTries) throw error
        // A client that has logged in meanwhile keeps its session.
        if (connected.has(clientId) || known.nodeOf(clientId) !== undefined) throw error
        record = known.get(clientId)
      }
    }
    return true
  }

  function changedElsewhere(session: Session, record: SessionRecord | undefined): void {
    session.storedVersion = record?.version
    // The store has applied a commit of this node that seemed to have failed.
    if (records.isOwn(record)) return
    // Another node has removed the clean sessions of this node: `claimAgain` stores them again.
    if (!record && session.clean && known.isTakenForDead()) return
    const { owner } = session
    here.exit(session)
    owner?.cut('takeover', 'another connection with the same client id')
  }
}

export type EndedSessions = ReturnType<typeof createEndedSessions>

/**
 * Removes expired sessions. If a node is gone, stores its run's end, and removes its clean sessions. Only the leader
 * does this.
 */
export function createEndedSessions(parts: {
  store: Store
  isLeader: () => boolean
  known: KnownSessions
  progress: Progress
  stored: StoredSessions
}) {
  const { store, isLeader, known, progress, stored } = parts

  return {
    endGone,

    /** Removes sessions that have been offline for too long, and returns their number. */
    async sweep(): Promise<number> {
      if (!isLeader()) return 0
      // `endGone` may have failed when the node went away.
      await endGone()
      const all = [...known.values()]
      const expired = all.filter(known.hasExpired)
      await eachOf(expired, stored.remove)
      const named = new Set(all.map(({ node }) => node))
      const over = progress.ended().filter((run) => !named.has(run))
      await store.commit(over.map(progress.removal))
      for (const run of over) progress.removed(run)
      return expired.length
    },
  }

  async function endGone(): Promise<void> {
    if (!isLeader()) return
    const gone = known.gone()
    const runs = new Set(gone.flatMap(({ node }) => node ?? []))
    await eachOf([...runs], progress.endRun)
    const clean = gone.filter((session) => session.clean)
    await eachOf(clean, stored.remove)
  }
}
