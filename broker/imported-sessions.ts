import { radioTree } from '../acl/access.ts'
import { isTemporary, type Principal, permissionKey } from '../acl/principal.ts'
import { filterContains } from '../event/topic.ts'
import type { Journal } from '../journal/journal.ts'
import { ConditionFailed, type Store } from '../store/store.ts'
import type { Qos } from './connection/protocol.ts'
import type { Denial, FilterRules } from './filter-rules.ts'
import type { Claims } from './login/claim.ts'
import type { CleanSessions } from './session/clean-sessions.ts'
import type { KnownSessions } from './session/known-sessions.ts'
import type { LocalSessions } from './session/local-sessions.ts'
import { type Records, recordChanges, type SessionRecord } from './session/session-record.ts'

export type ImportedSessions = ReturnType<typeof createImportedSessions>

/** A session of another broker, to be imported. */
export interface ForeignSession {
  clientId: string
  /** The principal that gets the session on this hub. */
  principal: Principal
  filters: readonly (readonly [filter: string, qos: Qos])[]
}

/** The filters that an imported session gets, or why the session is refused. */
type Admission =
  | { granted: ForeignSession['filters']; denials: Denial[] }
  | { reason: 'client-id' | 'exists' | 'too-many-sessions' | 'no-filter'; why: string; denials?: Denial[] }

/**
 * Imports sessions of another broker (docs/decisions, "Sessions of an Aedes broker come over as if their clients had
 * been away").
 */
export function createImportedSessions(parts: {
  store: Store
  journal: Journal
  known: KnownSessions
  local: LocalSessions
  records: Records
  clean: CleanSessions
  claims: Claims
  rules: FilterRules
  clock: () => number
  maxClientId: number
}) {
  const { store, journal, known, local, records, clean, claims, rules, clock, maxClientId } = parts

  return {
    /**
     * Decides whether a session is imported. `foreseen`: in a dry run, the number of sessions already admitted for the
     * same credential.
     */
    judge({ clientId, principal, filters }: ForeignSession, foreseen: number): Admission {
      const bytes = Buffer.byteLength(clientId)
      if (bytes === 0 || bytes > maxClientId) {
        return { reason: 'client-id', why: `it has ${bytes} bytes, expected 1 to ${maxClientId}` }
      }
      if (isTaken(clientId)) return { reason: 'exists', why: 'the hub has a session of this client id' }
      if (isTemporary(principal) || !claims.hasRoom(clientId, false, principal, foreseen)) {
        return { reason: 'too-many-sessions', why: `${principal.username} may have no further session` }
      }
      const { granted, denials } = granting(clientId, principal, filters)
      if (granted.length > 0) return { granted, denials }
      return { reason: 'no-filter', why: `${principal.username} may have none of its filters`, denials }
    },

    /** Stores a session with its granted filters. False: the client id has a session by now. */
    async bring({ clientId, principal, filters }: ForeignSession): Promise<boolean> {
      if (isTaken(clientId)) return false
      const record: SessionRecord = records.offline({
        clientId,
        clean: false,
        permission: permissionKey(principal),
        principal,
        createdAt: clock(),
        version: 0,
        dropped: 0,
        upTo: 0,
        owed: [],
        subscriptions: filters.map(([filter, qos]) => [filter, qos, startOf(filter)]),
      })
      try {
        await store.commit([
          ...recordChanges(record, undefined, records.areChecked),
          ...clean.removalOf(clientId),
        ])
      } catch (error) {
        if (error instanceof ConditionFailed) return false
        throw error
      }
      if (known.get(clientId) === undefined) known.set(record)
      return true
    },
  }

  function isTaken(clientId: string): boolean {
    return local.get(clientId) !== undefined || known.get(clientId) !== undefined
  }

  /**
   * The journal position after which a filter applies. A filter on radio topics applies from the start: the session
   * also gets earlier messages that the journal still has. Any other filter is on reports, and applies from now on.
   * Earlier reports are about events that did not come through the other broker.
   */
  function startOf(filter: string): number {
    return filterContains(radioTree, filter) ? 0 : journal.head()
  }

  /** Grants or denies the filters in order: each granted filter counts for the limit of the session. */
  function granting(clientId: string, principal: Principal, filters: ForeignSession['filters']) {
    const subscriptions: Parameters<FilterRules['denialOf']>[0]['subscriptions'] = new Map()
    const denials: Denial[] = []
    for (const [filter, qos] of filters) {
      const reason = rules.denialOf({ clientId, principal, subscriptions }, filter)
      if (reason === undefined) subscriptions.set(filter, { qos, since: 0 })
      else denials.push({ filter, reason })
    }
    return { granted: [...subscriptions].map(([filter, { qos }]) => [filter, qos] as const), denials }
  }
}
