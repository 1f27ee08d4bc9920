import type { Nodes } from '../../store/nodes/nodes.ts'
import type { Store } from '../../store/store.ts'
import type { HubTime } from '../hub-time.ts'
import type { Session } from './session.ts'
import { clientIdOf, readRecord, recordPrefix, type SessionRecord } from './session-record.ts'

export type KnownSessions = Awaited<ReturnType<typeof openKnownSessions>>

/** The part of a session that every node has in memory; the rest is read from the store when it is needed. */
export interface Known {
  readonly clientId: string
  readonly clean: boolean
  readonly permission: string
  readonly username: string
  readonly createdAt: number
  /** Number of the record as the store has it. */
  readonly version: number
  /** The run of a node that its client was connected to when the record was stored. */
  readonly node: string | undefined
  readonly disconnectedAt: number | undefined
  readonly offlineAt: number | undefined
}

/** All sessions of the store: on all nodes, connected or not. */
export async function openKnownSessions(parts: {
  store: Store
  nodes: Nodes
  hubTime: HubTime
  /** Offline sessions are forgotten after this time, milliseconds. */
  expiryMs: number
  clock: () => number
  /** When the run of a node that is gone ended, in hub time. */
  endOf: (node: string) => number | undefined
}) {
  const { store, nodes, hubTime, expiryMs, clock, endOf } = parts
  const known = new Map<string, Known>()
  /** Client ids of the persistent sessions, by the user name that used them last. */
  const persistent = new Map<string, Set<string>>()
  /** Sessions with equal permissions share one text, so comparing two texts is comparing two addresses. */
  const permissions = new Map<string, string>()
  const listeners: ((clientId: string, record: SessionRecord | undefined) => void)[] = []
  for await (const [, value] of store.range(recordPrefix)) set(readRecord(value))
  store.onOthers(recordPrefix, (change) => {
    if ('tell' in change) return
    const record = 'put' in change ? readRecord(change.value) : undefined
    const clientId = record?.clientId ?? clientIdOf('put' in change ? change.put : change.del)
    if (record) set(record)
    else remove(clientId)
    for (const listener of listeners) listener(clientId, record)
  })

  return {
    get: (clientId: string): Known | undefined => known.get(clientId),
    values: () => known.values(),
    /** Client ids of the persistent sessions of a credential. */
    persistentOf: (username: string): ReadonlySet<string> => persistent.get(username) ?? none,
    permission,

    set,
    remove,

    /** Notes that the connection of a session has ended. The store hears of it afterwards. */
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

    /** The node that the client is connected to, if that is another one and alive. */
    nodeOf(clientId: string): string | undefined {
      const node = known.get(clientId)?.node
      return node !== undefined && node !== nodes.self && nodes.isLiving(node) ? node : undefined
    },

    /** Sessions whose client was connected to a node that is gone. */
    gone: (): Known[] =>
      [...known.values()].filter(({ node }) => node !== undefined && !nodes.isLiving(node)),

    /** Whether this node knows that the others take it for dead. */
    isTakenForDead: (): boolean => !nodes.isLiving(nodes.self),

    /** Whether a session has been away for too long, whether or not it was removed already. */
    hasExpired(session: Known): boolean {
      const since = offlineSince(session)
      return since !== undefined && hubTime.now() - since >= expiryMs
    },

    /** When a session expires, as of now, by the wall clock; undefined while its client is connected. */
    expiresAt(session: Known): number | undefined {
      const since = offlineSince(session)
      return since === undefined ? undefined : clock() + expiryMs - (hubTime.now() - since)
    },
  }

  function set(record: SessionRecord): void {
    const { clientId, clean, principal, createdAt, version, node, disconnectedAt, offlineAt } = record
    remove(clientId)
    const { username } = principal
    const session: Known = {
      ...{ clientId, clean, permission: permission(record.permission), username, createdAt, version },
      ...{ node, disconnectedAt, offlineAt },
    }
    known.set(clientId, session)
    if (clean) return
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
    if (own === undefined) permissions.set(text, text)
    return own ?? text
  }

  /** Since when a client is offline, in hub time; undefined while it is connected. */
  function offlineSince({ node, offlineAt }: Known): number | undefined {
    if (node === undefined) return offlineAt ?? hubTime.now()
    return nodes.isLiving(node) ? undefined : (endOf(node) ?? hubTime.now())
  }
}

const none: ReadonlySet<string> = new Set()
