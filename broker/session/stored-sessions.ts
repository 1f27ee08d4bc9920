import { type Change, ConditionFailed, type Store } from '../../store/store.ts'
import { untilDone } from '../../store/until-done.ts'
import type { CleanSession, CleanSessions } from './clean-sessions.ts'
import { eachOf } from './each-of.ts'
import type { KnownSession, KnownSessions } from './known-sessions.ts'
import type { LocalSessions } from './local-sessions.ts'
import type { Outgoing } from './outgoing-qos2.ts'
import type { Session } from './session.ts'
import { type Records, recordKey } from './session-record.ts'

export type StoredSessions = ReturnType<typeof createStoredSessions>

type Removable = Pick<KnownSession, 'clientId' | 'version'>

/**
 * Stores and removes the records of this node's sessions. `ConditionFailed`: another node has changed the record. After
 * other failures the commit may have been applied: `repair` corrects the record later.
 */
export function createStoredSessions(parts: {
  store: Store
  records: Records
  known: KnownSessions
  local: LocalSessions
  outgoing: Outgoing
  clean: CleanSessions
}) {
  const { store, records, known, local, outgoing, clean } = parts
  const { changesOf, claimOf, recordOf, removalOf } = records
  const storeRecord = createRecordCommits(commitRecord)
  const repair = createRepair(settle)

  return {
    /** Stores a session in its present state. */
    store: storeRecord,

    /**
     * For a log-in: replaces `before`, or the clean session `replaced`, by the session, and lists the session as
     * connected.
     */
    async claim(
      session: Session,
      { before, replaced }: { before: Removable | undefined; replaced: CleanSession | undefined },
      removed: readonly Change[],
    ): Promise<void> {
      const changes = claimOf(session, before, replaced)
      const stored = session.clean ? undefined : recordOf(session)
      const { version } = session
      try {
        await store.commit([...removed, ...changes])
      } catch (error) {
        if (!(error instanceof ConditionFailed)) repair.add(session.clientId)
        throw error
      }
      if (stored) known.set(stored)
      else known.remove(session.clientId)
      session.storedVersion = version
      session.storedUpTo = stored?.upTo
      local.enter(session)
    },

    /** The client has gone: notes and stores that a session is offline, or removes a clean one. */
    async leave(session: Session): Promise<void> {
      local.leave(session)
      if (session.clean) return removeClean(session)
      known.goOffline(session)
      await storeRecord(session)
    },

    remove,
    removeClean,

    /** Corrects the stored record of a client id, about a second later. */
    repair: repair.add,

    close: repair.close,
  }

  async function commitRecord(session: Session): Promise<void> {
    const { clientId, state } = session
    const isLeaving = state === 'leaving'
    if (state !== 'connected' && !isLeaving) return
    const changes = changesOf(session)
    if (session.clean) return commitClean(session, changes)
    const record = recordOf(session)
    try {
      await outgoing.commitRemovals(
        (id) => id === clientId,
        (removals) => store.commit([...changes, ...removals]),
      )
    } catch (error) {
      // Without `repair`, the record could name this node although the client has gone.
      if (!(error instanceof ConditionFailed) || (isLeaving && (await isStillOwn(session))))
        repair.add(clientId)
      throw error
    }
    session.storedVersion = record.version
    session.storedUpTo = record.upTo
    known.set(record)
    if (isLeaving && session.state === 'leaving') local.remove(session)
  }

  async function commitClean(session: Session, changes: readonly Change[]): Promise<void> {
    const { version } = session
    try {
      await store.commit(changes)
    } catch (error) {
      if (!(error instanceof ConditionFailed)) repair.add(session.clientId)
      throw error
    }
    session.storedVersion = version
  }

  /** Whether the store still names this node for a leaving session. Otherwise another node has claimed the session. */
  async function isStillOwn(session: Session): Promise<boolean> {
    try {
      const record = await records.read(session.clientId)
      const isOwn = records.isOwn(record)
      if (isOwn) session.storedVersion = record?.version
      else if (session.state === 'leaving') local.remove(session)
      return isOwn
    } catch {
      return true
    }
  }

  /** Corrects the stored record of a client id. The record of another node stays. */
  async function settle(clientId: string): Promise<void> {
    const session = local.get(clientId)
    if (session?.state === 'claiming') return repair.add(clientId)
    try {
      if (session) return await storeRecord(session)
      const left = await clean.read(clientId)
      if (records.isOwn(left)) await store.commit(clean.removalOf(clientId, left?.version))
      const record = await records.read(clientId)
      if (!record || !records.isOwn(record)) return
      const offline = records.offline(record)
      await store.commit(records.replacement(offline, record.version))
      known.set(offline)
    } catch (error) {
      // Another node has claimed the session meanwhile.
      if (!(error instanceof ConditionFailed)) throw error
    }
  }

  /** Removes a session if `record` is still its newest record. Otherwise rejects with `ConditionFailed`. */
  async function remove(record: Removable): Promise<void> {
    const { clientId } = record
    const removed = await records.leftovers(clientId)
    const isReplaced = local.get(clientId)?.state === 'claiming'
    const isCurrent = known.get(clientId)?.version === record.version && !isReplaced
    if (!records.areChecked && !isCurrent) throw new ConditionFailed(recordKey(clientId))
    try {
      await store.commit([...removalOf(clientId, record), ...removed])
    } catch (error) {
      if (!(error instanceof ConditionFailed)) repair.add(clientId)
      throw error
    }
    local.forget(clientId)
    known.remove(clientId)
  }

  /** Removes a clean session of this node. One that another node has replaced stays. */
  async function removeClean({ clientId, storedVersion }: Session): Promise<void> {
    try {
      await store.commit(clean.removalOf(clientId, storedVersion))
    } catch (error) {
      if (error instanceof ConditionFailed) return
      repair.add(clientId)
      throw error
    }
    local.forget(clientId)
  }
}

/**
 * The commits of a session follow each other: each commit names the former record. Calls during a commit share the next
 * commit.
 */
function createRecordCommits<Holder>(commit: (holder: Holder) => Promise<void>) {
  const storing = new Map<Holder, { current: Promise<void>; next?: Promise<void> }>()

  return async (holder: Holder): Promise<void> => {
    const underway = storing.get(holder)
    if (!underway) return begin(holder)
    underway.next ??= Promise.allSettled([underway.current]).then(() => begin(holder))
    return underway.next
  }

  function begin(holder: Holder): Promise<void> {
    const current = commit(holder)
    const underway = { current }
    storing.set(holder, underway)
    const over = () => {
      if (storing.get(holder) === underway && !('next' in underway)) storing.delete(holder)
    }
    current.then(over, over)
    return current
  }
}

/** Calls `settle` for each added client id, every second until the call succeeds. */
function createRepair(settle: (clientId: string) => Promise<void>) {
  const due = new Set<string>()
  const closing = new AbortController()
  let isRunning = false

  return {
    add(clientId: string): void {
      due.add(clientId)
      if (!isRunning) void untilSettled()
    },
    close: (): void => closing.abort(),
  }

  /** Never rejects. */
  async function untilSettled(): Promise<void> {
    isRunning = true
    while (due.size > 0 && !closing.signal.aborted) {
      await untilDone(settleAll, { failed: () => undefined, hasFailed: true, signal: closing.signal })
    }
    isRunning = false
  }

  async function settleAll(): Promise<void> {
    const settling = [...due]
    due.clear()
    await eachOf(settling, (clientId) => settle(clientId).catch(() => void due.add(clientId)))
    if (due.size > 0) throw new Error('not all records are right')
  }
}
