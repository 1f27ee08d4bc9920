import type { RetainedMessages } from '../journal/retained.ts'
import type { Calls } from '../store/nodes/calls.ts'
import type { Nodes } from '../store/nodes/nodes.ts'
import type { Store } from '../store/store.ts'
import { inTurns } from '../telemetry/turns.ts'
import type { Clients } from './connection/client.ts'
import {
  type ClientView,
  figuresOf,
  type RetainedView,
  type SessionFigures,
  type SessionView,
  toClientView,
  toRetainedView,
  toSessionView,
} from './operators-view.ts'
import type { CleanSessions } from './session/clean-sessions.ts'
import type { KnownSession, KnownSessions } from './session/known-sessions.ts'
import type { Returning } from './session/returning.ts'
import { readRecord, recordKey, recordPrefix, type SessionRecord } from './session/session-record.ts'
import type { Sessions } from './session/sessions.ts'
import { addCounts, countSubscribers, type SubscriberCounts } from './subscriber-counts.ts'

/** True: done. False: there is no such client or session. `error`: why this node does not know the outcome. */
type Operated = boolean | { error: string }

/** Shows operators the clients, sessions and retained messages of all nodes, and ends connections and sessions. */
export function createOperating(parts: {
  store: Store
  sessions: Sessions
  known: KnownSessions
  clean: CleanSessions
  returning: Returning
  retained: RetainedMessages
  clients: Clients
  nodes: Nodes
  calls: Calls
}) {
  const { store, sessions, known, clean, returning, retained, clients, nodes, calls } = parts
  calls.serve('clients', clientsHere)
  calls.serve('session-figures', figuresHere)
  calls.serve('subscribers', (livestreams) => subscribersHere(livestreams as string[]))
  calls.serve('disconnect', (clientId) => disconnectHere(String(clientId)))
  calls.serve('drop-session', (clientId) => sessions.drop(String(clientId)))

  return {
    disconnect: (clientId: string): Promise<Operated> => operate('disconnect', clientId),

    /** Forgets a session and closes its connection. */
    dropSession: (clientId: string): Promise<Operated> => operate('drop-session', clientId),

    /** The clients that are logged in. */
    async clients(): Promise<ClientView[]> {
      const others = await calls.answersOfOthers<ClientView[]>('clients', null)
      return [...(await clientsHere()), ...others.flat()]
    },

    /** Counts the connected clients of all nodes by which of these livestreams they subscribe to. */
    async subscribers(livestreams: readonly string[]): Promise<SubscriberCounts> {
      const others = await calls.answersOfOthers<SubscriberCounts>('subscribers', livestreams)
      return addCounts([await subscribersHere(livestreams), ...others])
    },

    /** The same of this node alone. */
    subscribersHere,

    /** Counts the persistent sessions of all nodes. */
    sessionCounts(): { connected: number; away: number } {
      const counts = { connected: 0, away: 0 }
      for (const { disconnectedAt } of known.values()) {
        counts[disconnectedAt === undefined ? 'connected' : 'away']++
      }
      return counts
    },

    /** All sessions, connected or not. */
    async sessionList(): Promise<SessionView[]> {
      const figures = await allFigures()
      const views = await inTurns(figures.values(), connectedView)
      for await (const [, value] of store.range(recordPrefix)) {
        const record = readRecord(value)
        const session = known.get(record.clientId)
        if (session && !figures.has(record.clientId)) views.push(viewOf(session, awayFigures(record)))
      }
      return views
    },

    /** One session, with how many messages its client would get now. Undefined: no session. */
    async session(clientId: string): Promise<SessionView | undefined> {
      const connected = (await allFigures()).get(clientId)
      if (connected) return connectedView(connected)
      const session = known.get(clientId)
      const stored = session && (await store.get(recordKey(clientId)))
      if (!stored) return undefined
      const record = readRecord(stored)
      return viewOf(session, { ...awayFigures(record), ...(await returning.waitingOf(record)) })
    },

    /** Retained messages on topics that match the filter. */
    async retainedList(filter: string): Promise<RetainedView[]> {
      const views = await inTurns(retained.topics(filter), (topic) => {
        const value = retained.current(topic)
        return value && toRetainedView(value)
      })
      return views.filter((view) => view !== undefined)
    },

    isConnected: async (clientId: string): Promise<boolean> => (await nodeWith(clientId)) !== undefined,

    hasSession: async (clientId: string): Promise<boolean> =>
      known.get(clientId) !== undefined || (await nodeWith(clientId)) !== undefined,
  }

  async function clientsHere(): Promise<ClientView[]> {
    const views = await inTurns([...clients.open], ({ connection, session }) =>
      session?.outgoing ? toClientView(session, connection, nodes.name) : undefined,
    )
    return views.filter((view) => view !== undefined)
  }

  function subscribersHere(livestreams: readonly string[]): Promise<SubscriberCounts> {
    return countSubscribers(
      [...clients.open].flatMap(({ session }) => (session?.outgoing ? [session.subscriptions.keys()] : [])),
      new Set(livestreams),
    )
  }

  function figuresHere(): Promise<SessionFigures[]> {
    return inTurns(sessions.connected(), figuresOf)
  }

  /** The connected sessions of all nodes, by client id. */
  async function allFigures(): Promise<Map<string, SessionFigures & { node: string }>> {
    const others = (await calls.askOthers('session-figures', null)) as [string, SessionFigures[] | null][]
    const all = [[nodes.self, await figuresHere()] as const, ...others].flatMap(([node, figures]) =>
      (figures ?? []).map((each) => ({ ...each, node: nodes.nameOf(node) })),
    )
    return new Map(all.map((figures) => [figures.clientId, figures]))
  }

  function connectedView(figures: SessionFigures & { node: string }): SessionView {
    return toSessionView(figures, { node: figures.node, expiresAt: undefined }, figures)
  }

  function viewOf(session: KnownSession, figures: Parameters<typeof toSessionView>[2]): SessionView {
    const run = knownNodeOf(session.clientId)
    const node = run === undefined ? undefined : nodes.nameOf(run)
    return toSessionView(session, { node, expiresAt: known.expiresAt(session) }, figures)
  }

  /** The living node that the client of a persistent session, or of a session here, is connected to. */
  function knownNodeOf(clientId: string): string | undefined {
    return sessions.get(clientId) ? nodes.self : known.nodeOf(clientId)
  }

  /** The living node that a client is connected to. */
  async function nodeWith(clientId: string): Promise<string | undefined> {
    const node = knownNodeOf(clientId)
    if (node !== undefined) return node
    const found = await clean.read(clientId)
    return found && found.node !== nodes.self && nodes.isLiving(found.node) ? found.node : undefined
  }

  /** Lets the node of a client do what it serves under this name. */
  async function operate(name: 'disconnect' | 'drop-session', clientId: string): Promise<Operated> {
    const node = (await nodeWith(clientId)) ?? nodes.self
    const answer = await calls.ask(node, name, clientId)
    if (answer === undefined) return { error: `the node ${nodes.nameOf(node)} did not answer: try again` }
    return answer === true
  }

  function disconnectHere(clientId: string): boolean {
    const connection = sessions.get(clientId)?.connection
    connection?.cut('operator', 'disconnected by an operator')
    return connection !== undefined
  }
}

function awayFigures({ subscriptions, dropped }: SessionRecord) {
  return { subscriptions: subscriptions.map(([filter]) => filter), queued: null, inFlight: null, dropped }
}
