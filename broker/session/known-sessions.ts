import type { Nodes } from '../../store/nodes/nodes.ts'
import type { Store } from '../../store/store.ts'
import type { HubTime } from '../hub-time.ts'
import type { Session } from './session.ts'
import { clientIdOf, readRecord, recordPrefix, type SessionRecord } from './session-record.ts'

export type KnownSessions = Awaited<ReturnType<typeof openKnownSessions>>

/** The summary of a persistent session that every node has in memory. The store has the rest. */
export interface KnownSession {
  readonly clientId: string
  readonly permission: string
  readonly username: string
  readonly createdAt: number
  /** Version of the record in the store. */
  readonly version: number
  /** Id of the client's node when the record was stored. A node gets a new id at each start. */
  readonly node: string | undefined
  readonly disconnectedAt: number | undefined
  readonly offlineAt: number | undefined
}

/** Reads the summaries of all persistent sessions, of all nodes, and keeps them up to date. */
export async function openKnownSessions(parts: {
  store: Store
  nodes: Nodes
  hubTime: HubTime
  /** The hub removes a session that has been offline for this time, milliseconds. */
  expiryMs: number
  clock: () => number
  /** The hub time at which a node ended, milliseconds. Undefined: not known. */
  endOf: (node: string) => number | undefined
}) {
  const { store, nodes, hubTime, expiryMs, clock, endOf } = parts
  const known = new Map<string, KnownSession>()
  /** Client ids, by the user name that last used each session. */
  const persistent = new Map<string, Set<string>>()
  /** Permission digests. Equal ones share one string, so that V8 compares addresses instead of texts. */
  const permissions = new Map<string, string>()
  const listeners: ((clientId: string, record: SessionRecord | undefined) => void)[] = []
  for await (const [, value] of store.range(recordPrefix)) set(readRecord(value))
  store.onOthers(recordPrefix, (key, value) => {
    const record = value && readRecord(value)
    const clientId = record?.clientId ?? clientIdOf(key)
    if (record) set(record)
    else remove(clientId)
    for (const listener of listeners) listener(clientId, record)
  })

  return {
    get: (clientId: string): KnownSession | undefined => known.get(clientId),
    values: () => known.values(),
    /** Client ids of the persistent sessions of a credential. */
    persistentOf: (username: string): ReadonlySet<string> => persistent.get(username) ?? none,
    permission,

    set,
    remove,

    /** Notes in memory that a session is offline. */
    goOffline({
      clientId,
      disconnectedAt,
      offlineAt,
    }: Pick<Session, 'clientId' | 'disconnectedAt' | 'offlineAt'>): void {
      const session = known.get(clientId)
      if (session) known.set(clientId, { ...session, node: undefined, disconnectedAt, offlineAt })
    },

    /** Calls back when another node has stored or removed a record. */
    onChanged: (listener: (clientId: string, record: SessionRecord | undefined) => void): void =>
      void listeners.push(listener),

    /** The other living node that the client is connected to, if any. */
    nodeOf(clientId: string): string | undefined {
      const node = known.get(clientId)?.node
      return node !== undefined && node !== nodes.self && nodes.isLiving(node) ? node : undefined
    },

    /** Sessions whose client was connected to a node that is gone. */
    gone: (): KnownSession[] =>
      [...known.values()].filter(({ node }) => node !== undefined && !nodes.isLiving(node)),

    /** Whether a session has been offline for `expiryMs`. The next sweep removes such a session. */
    hasExpired(session: KnownSession): boolean {
      const since = offlineSince(session)
      return since !== undefined && hubTime.now() - since >= expiryMs
    },

    /** Estimates when a session will expire, milliseconds since the epoch. Undefined while its client is connected. */
    expiresAt(session: KnownSession): number | undefined {
      const since = offlineSince(session)
      return since === undefined ? undefined : clock() + expiryMs - (hubTime.now() - since)
    },
  }

  function set(record: SessionRecord): void {
    const { clientId, principal, createdAt, version, node, disconnectedAt, offlineAt } = record
    remove(clientId)
    const { username } = principal
    const session: KnownSession = {
      clientId,
      permission: permission(record.permission),
      username,
      createdAt,
      version,
      node,
      disconnectedAt,
      offlineAt,
    }
    known.set(clientId, session)
    const held = persistent.get(username)
    if (held) held.add(clientId)
    else persistent.set(username, new Set([clientId]))
  }

  function remove(clientId: string): void {
    const session = known.get(clientId)
    if (!session) return
    known.delete(clientId)
    const held = persistent.get(session.username)
    if (held?.delete(clientId) && held.size === 0) persistent.delete(session.username)
  }

  function permission(text: string): string {
    const own = permissions.get(text)
    if (own !== undefined) return own
    // Temporary credentials bring new permissions without end. Clearing the map costs memory only: equal texts may be
    // there twice.
    if (permissions.size >= mostPermissions) permissions.clear()
    permissions.set(text, text)
    return text
  }

  /** The hub time at which the client went offline, milliseconds. Undefined while the client is connected. */
  function offlineSince({ node, offlineAt }: KnownSession): number | undefined {
    if (node === undefined) return offlineAt ?? hubTime.now()
    return nodes.isLiving(node) ? undefined : (endOf(node) ?? hubTime.now())
  }
}

const none: ReadonlySet<string> = new Set()
const mostPermissions = 10_000
