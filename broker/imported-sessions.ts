import { radioTree } from '../acl/access.ts'
import { isTemporary, type Principal, permissionKey } from '../acl/principal.ts'
import { filterContains } from '../event/topic.ts'
import type { Journal } from '../journal/journal.ts'
import { ConditionFailed, type Store } from '../store/store.ts'
import type { Qos } from './connection/wire.ts'
import type { Denial, FilterRules } from './filter-rules.ts'
import type { Claims } from './login/claim.ts'
import type { SessionsHere } from './session/here.ts'
import type { KnownSessions } from './session/known-sessions.ts'
import { type Records, recordChanges, type SessionRecord } from './session/session-record.ts'

export type ImportedSessions = ReturnType<typeof createImportedSessions>

/** A session of another broker. */
export interface ForeignSession {
  clientId: string
  /** The principal that gets the session on this hub. */
  principal: Principal
  filters: readonly (readonly [filter: string, qos: Qos])[]
}

/** The filters with which a session may be imported, or why it may not. */
export type Admission =
  | { granted: ForeignSession['filters']; denials: Denial[] }
  | { reason: 'client-id' | 'exists' | 'too-many-sessions' | 'no-filter'; why: string; denials?: Denial[] }

/**
 * Imports sessions of another broker, as if their clients had been away for as long as this hub keeps messages. A
 * client that comes back gets every control event that is still valid, and the newest message of each other topic.
 */
export function createImportedSessions(parts: {
  store: Store
  journal: Journal
  known: KnownSessions
  here: SessionsHere
  records: Records
  claims: Claims
  rules: FilterRules
  clock: () => number
  maxClientIdBytes: number
}) {
  const { store, journal, known, here, records, claims, rules, clock, maxClientIdBytes } = parts

  return {
    /** Decides about a session. `foreseen`: number of other sessions of its credential that are about to be made. */
    judge({ clientId, principal, filters }: ForeignSession, foreseen: number): Admission {
      const bytes = Buffer.byteLength(clientId)
      if (bytes === 0 || bytes > maxClientIdBytes) {
        return { reason: 'client-id', why: `it has ${bytes} bytes, expected 1 to ${maxClientIdBytes}` }
      }
      if (isTaken(clientId)) return { reason: 'exists', why: 'the hub has a session of this client id' }
      if (isTemporary(principal) || !claims.hasRoom(clientId, false, principal, foreseen)) {
        return { reason: 'too-many-sessions', why: `${principal.username} may have no further session` }
      }
      const { granted, denials } = granting(clientId, principal, filters)
      if (granted.length > 0) return { granted, denials }
      return { reason: 'no-filter', why: `${principal.username} may have none of its filters`, denials }
    },

    /** Stores a session with the filters that it was granted. False: by now the client id has a session. */
    async bring({ clientId, principal, filters }: ForeignSession): Promise<boolean> {
      if (isTaken(clientId)) return false
      const record: SessionRecord = records.offline({
        ...{ clientId, clean: false, permission: permissionKey(principal), principal },
        ...{ createdAt: clock(), version: 0, dropped: 0, upTo: 0, owed: [] },
        subscriptions: filters.map(([filter, qos]) => [filter, qos, startOf(filter)]),
      })
      try {
        await store.commit(recordChanges(record, undefined, records.areChecked))
      } catch (error) {
        if (error instanceof ConditionFailed) return false
        throw error
      }
      if (known.get(clientId) === undefined) known.set(record)
      return true
    },
  }

  function isTaken(clientId: string): boolean {
    const isHere = here.connected.has(clientId) || here.claiming.has(clientId) || here.leaving.has(clientId)
    return isHere || known.get(clientId) !== undefined
  }

  /** Radio filters count from the start, others from now: earlier reports are about events that came another way. */
  function startOf(filter: string): number {
    return filterContains(radioTree, filter) ? 0 : journal.head()
  }

  /** Grants or denies each filter, in their order, as in a SUBSCRIBE: each granted one counts for the limit. */
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
