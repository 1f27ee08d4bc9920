import { ConditionFailed } from '../../store/store.ts'
import type { Reading } from '../fanout/reading.ts'
import type { CleanSessions } from './clean-sessions.ts'
import { eachOf } from './each-of.ts'
import type { KnownSession, KnownSessions } from './known-sessions.ts'
import type { LocalSessions } from './local-sessions.ts'
import type { Progress } from './progress.ts'
import type { Session } from './session.ts'
import type { Records, SessionRecord } from './session-record.ts'
import type { StoredSessions } from './stored-sessions.ts'

export type Sessions = ReturnType<typeof createSessions>

/** Maximum number of tries of one removal: another commit may store the session meanwhile. */
const maxTries = 5

/**
 * The sessions of the clients that are connected to this node. If another node claims a session that ends here, the
 * store decides. On the leader, also the ends of sessions whose clients are nowhere.
 */
export function createSessions(parts: {
  isLeader: () => boolean
  known: KnownSessions
  local: LocalSessions
  records: Records
  stored: StoredSessions
  progress: Progress
  reading: Reading
  clean: CleanSessions
}) {
  const { isLeader, known, local, records, stored, progress, reading, clean } = parts

  known.onChanged((clientId, record) => {
    const session = local.get(clientId)
    if (session?.state === 'claiming') return
    if (session?.state === 'connected') changedElsewhere(session, record)
    else if (record && records.isOwn(record)) {
      // A commit without an answer was applied after all: the record must be corrected.
      if (session) session.storedVersion = record.version
      else stored.repair(clientId)
    } else if (session) local.remove(session)
  })
  clean.onReplaced((clientId, version) => {
    const session = local.connected(clientId)
    if (session?.clean && (session.storedVersion ?? 0) < version) takenOver(session)
  })

  return {
    /** The session of a client that is connected here. */
    get: local.connected,
    /** The sessions of all clients that are connected here. */
    connected,
    endGone,

    /** Removes sessions that have been offline for too long, and returns their number. */
    async sweep(): Promise<number> {
      if (!isLeader()) return 0
      // `endGone` may have failed when the node went away.
      await endGone()
      const expired = [...known.values()].filter(known.hasExpired)
      await eachOf(expired, stored.remove)
      // Only now: a node may have taken a session over, and ended, while sessions were removed.
      const named = new Set([...known.values()].map(({ node }) => node))
      await progress.remove(progress.ended().filter((run) => !named.has(run)))
      return expired.length
    },

    /** The client has gone: ends a clean session [MQTT-3.1.2-6], and stores that a persistent one is offline. */
    async leave(session: Session): Promise<void> {
      if (session.state !== 'connected') return
      if (!session.clean) reading.end(session)
      await stored.leave(session)
    },

    /** Ends a session whose client got no CONNACK, unless another node has claimed it meanwhile. */
    async giveUp({ state, clientId }: Session): Promise<void> {
      if (state !== 'connected') return
      try {
        await remove(clientId, records.isOwn)
      } catch (error) {
        if (!(error instanceof ConditionFailed)) throw error
      }
    },

    /** Stores the sessions again, after other nodes took this node for dead. */
    async claimAgain(): Promise<void> {
      await eachOf(connected(), async (session) => {
        try {
          await stored.store(session)
        } catch (error) {
          // Of a clean session, no node hears.
          if (session.clean && error instanceof ConditionFailed && session.state === 'connected')
            takenOver(session)
          throw error
        }
      })
    },

    /** Removes a session with all its messages, for an operator. False: there is no such session. */
    drop(clientId: string): Promise<boolean> {
      local.connected(clientId)?.connection?.cut('operator', 'session dropped by an operator')
      return remove(clientId)
    },
  }

  function connected(): Session[] {
    return [...local.values()].filter(({ state }) => state === 'connected')
  }

  /** `isMeant`: whether the session is still to be removed when another commit has changed its record meanwhile. */
  async function remove(
    clientId: string,
    isMeant: (record: KnownSession) => boolean = () => true,
  ): Promise<boolean> {
    const session = local.connected(clientId)
    if (session) local.remove(session)
    local.forget(clientId)
    if (session?.clean) {
      await stored.removeClean(session)
      return true
    }
    let record = known.get(clientId)
    if (!session && !record) return false
    for (let tries = 1; record; tries++) {
      try {
        await stored.remove(record)
        return true
      } catch (error) {
        if (!(error instanceof ConditionFailed) || tries >= maxTries) throw error
        // A client that has logged in meanwhile keeps its session.
        if (local.connected(clientId) || known.nodeOf(clientId) !== undefined) throw error
        record = known.get(clientId)
        if (record && !isMeant(record)) throw error
      }
    }
    return true
  }

  function changedElsewhere(session: Session, record: SessionRecord | undefined): void {
    if (session.clean) {
      if (record && !records.isOwn(record)) takenOver(session)
      return
    }
    session.storedVersion = record?.version
    // The store has applied a commit of this node that seemed to have failed.
    if (!records.isOwn(record)) takenOver(session)
  }

  function takenOver(session: Session): void {
    const { connection } = session
    local.remove(session)
    connection?.cut('takeover', 'another connection with the same client id')
  }

  /** If nodes are gone, stores the ends of their runs, and removes the records of their clean sessions. */
  async function endGone(): Promise<void> {
    if (!isLeader()) return
    const gone = known.gone()
    const runs = new Set(gone.flatMap(({ node }) => node ?? []))
    await eachOf([...runs], progress.endRun)
    await clean.removeGone()
  }
}
