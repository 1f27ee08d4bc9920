import { type Principal, permissionKey } from '../../acl/principal.ts'
import type { Journal } from '../../journal/journal.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import type { Sequences } from '../../store/nodes/sequences.ts'
import { ConditionFailed, type Store } from '../../store/store.ts'
import type { MqttConnection } from '../connection/connection.ts'
import type { Reading } from '../fanout/reading.ts'
import { createEndedSessions } from './ended-sessions.ts'
import type { HubTime } from './hub-time.ts'
import { createClientIds, type KnownSessions } from './known-sessions.ts'
import type { Outgoing } from './outgoing-qos2.ts'
import { type Progress, unsettledOf } from './progress.ts'
import { createRecordCommits, createRepair, eachOf } from './record-commits.ts'
import type { Returning } from './returning.ts'
import {
  ClientGone,
  createSession,
  detach,
  ForeignSession,
  type Session,
  type SessionBounds,
  TooManySessions,
} from './session.ts'
import { createRecords, fromStored, recordChanges, recordKey, type SessionRecord } from './session-record.ts'
import { createGrants, type Routes } from './subscriptions.ts'

export type Sessions = ReturnType<typeof createSessions>

/** How often a log-in or a removal looks again because the session was stored in between. */
const maxTries = 5

/**
 * The sessions of the clients that are connected to this node: made, resumed, left and dropped.
 *
 * A session belongs to the permissions it was made with (design.md §5): another principal with the same
 * permissions may resume it, anybody else is refused while it exists. The store decides which of two nodes has it.
 */
export function createSessions(parts: {
  store: Store
  journal: Journal
  known: KnownSessions
  returning: Returning
  reading: Reading
  outgoing: Outgoing
  progress: Progress
  routes: Routes
  nodes: Nodes
  sequences: Sequences
  clock: () => number
  hubTime: HubTime
  bounds: SessionBounds
  maxPerCredential: number // persistent ones
}) {
  const { store, journal, known, returning, reading, outgoing, progress, routes, nodes, sequences } = parts
  const { clock, hubTime, bounds, maxPerCredential } = parts
  const here = new Map<string, Session>()
  /** Their log-in is on its way into the store: it decides who has them. */
  const claiming = new Map<string, Session>()
  /** Their connection has ended, and the store has not heard of it yet. */
  const leaving = new Map<string, Session>()
  /** They left while QoS 2 messages of theirs were on their way into the store. */
  const receiving = new Map<string, Session>()
  const storeRecord = createRecordCommits(commitRecord)
  const repair = createRepair(settle)
  const records = createRecords({ store, reading, nodes, sequences, bounds })
  const { read, changesOf, recordOf, placeOf, removalOf, isStored, leftovers } = records
  const isHere = (session: Session) => here.get(session.clientId) === session
  const grants = createGrants({ routes, journal, isHere, storeRecord })
  const ended = createEndedSessions({ store, nodes, known, progress, removeStored })
  const { admits, hasRoom } = createClientIds({ known, here, claiming, maxPerCredential })

  known.onChanged((clientId, record) => {
    const session = here.get(clientId)
    if (claiming.has(clientId)) return
    if (session) changedElsewhere(session, record)
    else if (record?.node === nodes.self) {
      // A commit without an answer was applied all the same: the record has to be made right.
      const left = leaving.get(clientId)
      if (left) left.storedVersion = record.version
      else repair.add(clientId)
    } else leaving.delete(clientId)
  })
  progress.start(valueNow, outgoing.takeFinished)

  return {
    /** The session of a client that is connected here. */
    get: (clientId: string): Session | undefined => here.get(clientId),
    values: () => here.values(),
    admits,
    hasRoom,
    subscribe: grants.subscribe,
    unsubscribe: grants.unsubscribe,
    endSubscriptions: grants.endSubscriptions,
    storeSubscriptions: grants.store,
    ...ended,

    /**
     * The session of a client that logs in: resumed, or new. Nobody else may own it at this moment, and
     * `admits` has said yes. Rejects when it cannot be stored, or the credential has too many.
     */
    async claim(
      clientId: string,
      clean: boolean,
      principal: Principal,
      owner: MqttConnection,
    ): Promise<{ session: Session; resumed: boolean }> {
      for (let tries = 1; ; tries++) {
        // Another node may have let somebody in meanwhile.
        if (!admits(clientId, principal)) throw new ForeignSession()
        if (!hasRoom(clientId, clean, principal)) throw new TooManySessions()
        try {
          const left = leaving.get(clientId)
          if (left) await storeRecord(left)
          if (owner.destroyed) throw new ClientGone()
          return await begin(clientId, clean, principal, owner)
        } catch (error) {
          if (!(error instanceof ConditionFailed) || tries >= maxTries) throw error
        } finally {
          if (claiming.get(clientId)?.owner === owner) claiming.delete(clientId)
          // What was told meanwhile of an attempt that was given up.
          if (known.get(clientId)?.node === nodes.self && !here.has(clientId)) repair.add(clientId)
        }
      }
    },

    /** The connection is gone: a clean session ends [MQTT-3.1.2-6], another waits for its client. */
    async release(session: Session, owner: MqttConnection): Promise<void> {
      if (session.owner !== owner) return
      letGo(session)
      if (session.processing.size > 0) void keepReceiving(session)
      leave(session)
      if (!session.clean) reading.leave(session)
      known.goOffline(session)
      if (!session.clean) return storeRecord(session)
      const record = known.get(session.clientId)
      if (record) await removeStored(record)
    },

    /** Ends a session that its client was never told of. */
    async giveUp({ clientId }: Session): Promise<void> {
      try {
        await drop(clientId)
      } catch (error) {
        // Another node has it by now.
        if (!(error instanceof ConditionFailed)) throw error
      }
    },

    /** Logs in again who is connected here: the others took this node for dead. */
    async claimAgain(): Promise<void> {
      await eachOf([...here.values()].filter(isStored), storeRecord)
    },

    /** Forgets a session and all it is owed. The caller closes its connection. False when there is none. */
    drop,

    /** All connections are closed. */
    async close(): Promise<void> {
      repair.close()
      await progress.close()
    },
  }

  /** How far the persistent sessions of this node have got. */
  function valueNow() {
    const all = [...here.values(), ...leaving.values(), ...claiming.values()]
    return { version: sequences.next(), upTo: reading.delivered(), unsettled: unsettledOf(all, placeOf) }
  }

  async function begin(
    clientId: string,
    clean: boolean,
    principal: Principal,
    owner: MqttConnection,
  ): Promise<{ session: Session; resumed: boolean }> {
    const before = known.get(clientId)
    const isResumed = before !== undefined && !before.clean && !clean && !known.hasExpired(before)
    const record = isResumed ? await read(clientId) : undefined
    if (isResumed && record?.version !== before.version) {
      // Another node has stored or removed it: this one goes on when it has heard of that.
      await store.commit([{ tell: 'caught up', value: '' }])
      throw new ConditionFailed(recordKey(clientId))
    }
    const permission = known.permission(permissionKey(principal))
    const createdAt = record?.createdAt ?? clock()
    const left = receiving.get(clientId)
    const isSame = record !== undefined && left?.createdAt === createdAt
    const ofLeft = { receiving: isSame ? left : undefined }
    const session = createSession({ clientId, clean, permission, principal, createdAt, owner, ...ofLeft })
    session.storedVersion = before?.version
    // The value of this node may be written before it is brought back: until then it has got as far as its record says.
    session.upTo = record?.upTo ?? journal.head()
    session.backlog = (record?.owed ?? []).map(fromStored)
    claiming.set(clientId, session)
    const noteLosses = record && (await returning.bringBack(session, record))
    const removed = before && !record ? await leftovers(clientId) : []
    const changes = changesOf(session)
    const stored = recordOf(session)
    try {
      await store.commit([...removed, ...(isStored(session) ? changes : removalOf(before))])
    } catch (error) {
      if (!(error instanceof ConditionFailed)) {
        repair.add(clientId)
        // It may be applied later, and names this node then.
        noteLosses?.()
        if (record) leave(session)
      }
      throw error
    }
    noteLosses?.()
    known.set(stored)
    session.storedVersion = stored.version
    session.storedUpTo = stored.upTo
    here.set(clientId, session)
    grants.join(session)
    return { session, resumed: record !== undefined }
  }

  async function commitRecord(session: Session): Promise<void> {
    const { clientId } = session
    if (here.get(clientId) !== session && leaving.get(clientId) !== session) return
    const isLeaving = leaving.get(clientId) === session
    const changes = changesOf(session)
    const record = recordOf(session)
    const finished = outgoing.takeFinished(session)
    try {
      await store.commit([...changes, ...finished.changes])
    } catch (error) {
      finished.putBack()
      // The store has not heard of it yet, and is told again.
      if (!(error instanceof ConditionFailed) || (isLeaving && (await isStillOwn(session))))
        repair.add(clientId)
      throw error
    }
    session.storedVersion = record.version
    session.storedUpTo = record.upTo
    known.set(record)
    if (isLeaving && leaving.get(clientId) === session) leaving.delete(clientId)
  }

  /** Its client has gone, which the store has not heard of yet. */
  function leave(session: Session): void {
    session.disconnectedAt = clock()
    session.offlineAt = hubTime.now()
    if (!session.clean) leaving.set(session.clientId, session)
  }

  /**
   * Whether the store still has a leaving session as one of this node: of an attempt that was given up. If not, another
   * node answers for how far it has got.
   */
  async function isStillOwn(session: Session): Promise<boolean> {
    try {
      const record = await read(session.clientId)
      if (record?.node === nodes.self) session.storedVersion = record.version
      else if (leaving.get(session.clientId) === session) leaving.delete(session.clientId)
      return record?.node === nodes.self
    } catch {
      return true
    }
  }

  /** Makes the stored record of a client id right. That of another node's client is its own business. */
  async function settle(clientId: string): Promise<void> {
    if (claiming.has(clientId)) return repair.add(clientId)
    const session = here.get(clientId) ?? leaving.get(clientId)
    try {
      if (session) return await (isStored(session) ? storeRecord(session) : undefined)
      const record = await read(clientId)
      if (record?.node !== nodes.self) return
      if (record.clean) return await removeStored(record)
      const { node: _given, ...offline } = record
      const version = Math.max(record.version + 1, sequences.next())
      const changed = { ...offline, version, disconnectedAt: clock(), offlineAt: hubTime.now() }
      await store.commit(recordChanges(changed, record.version, nodes.isShared))
      known.set(changed)
    } catch (error) {
      // Another node has it by now.
      if (!(error instanceof ConditionFailed)) throw error
    }
  }

  async function drop(clientId: string): Promise<boolean> {
    const session = here.get(clientId)
    if (session) letGo(session)
    leaving.delete(clientId)
    receiving.delete(clientId)
    let record = known.get(clientId)
    if (!session && !record) return false
    for (let tries = 1; record; tries++) {
      try {
        await removeStored(record)
        return true
      } catch (error) {
        if (!(error instanceof ConditionFailed) || tries >= maxTries) throw error
        // It was stored meanwhile. Who has logged in with it by now keeps it.
        if (here.has(clientId) || known.nodeOf(clientId) !== undefined) throw error
        record = known.get(clientId)
      }
    }
    return true
  }

  /** Removes a session as it was when somebody judged that it must go. */
  async function removeStored(record: Pick<SessionRecord, 'clientId' | 'clean' | 'version'>): Promise<void> {
    const { clientId } = record
    const removed = record.clean ? [] : await leftovers(clientId)
    // A store that nodes share checks this itself.
    const isReplaced = !record.clean && claiming.has(clientId)
    const isCurrent = known.get(clientId)?.version === record.version && !isReplaced
    if (!nodes.isShared && !isCurrent) throw new ConditionFailed(recordKey(clientId))
    try {
      await store.commit([...removalOf(record), ...removed])
    } catch (error) {
      if (!(error instanceof ConditionFailed)) repair.add(clientId)
      throw error
    }
    leaving.delete(clientId)
    known.remove(clientId)
  }

  function changedElsewhere(session: Session, record: SessionRecord | undefined): void {
    session.storedVersion = record?.version
    // An attempt of this node that was given up.
    if (record?.node === nodes.self) return
    // A node that takes this one for dead ends its clean sessions. They go on when it is back.
    if (!record && session.clean && !nodes.isLiving(nodes.self)) return
    const { owner } = session
    letGo(session)
    owner?.cut('takeover', 'another connection with the same client id')
  }

  /** Whoever resumes it meanwhile must know what is on its way. */
  async function keepReceiving(session: Session): Promise<void> {
    receiving.set(session.clientId, session)
    await Promise.allSettled(session.processing.values())
    if (receiving.get(session.clientId) === session) receiving.delete(session.clientId)
  }

  /** It is not connected here any more. */
  function letGo(session: Session): void {
    detach(session)
    reading.stop(session)
    if (here.get(session.clientId) !== session) return
    here.delete(session.clientId)
    grants.leave(session)
  }
}
