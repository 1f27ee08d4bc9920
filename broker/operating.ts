import type { Calls } from '../store/nodes/calls.ts'
import type { Nodes } from '../store/nodes/nodes.ts'
import type { Links } from './connection/link.ts'
import type { RetainedMessages } from './fanout/retained.ts'
import { isElsewhere, type Session } from './session/session.ts'
import type { Sessions } from './session/sessions.ts'
import {
  type ClientView,
  type RetainedView,
  type SessionView,
  toClientView,
  toRetainedView,
  toSessionView,
} from './views.ts'

/** What only the node knows that had to do with a session. */
interface SessionFigures {
  clientId: string
  dropped: number
  /** Where its client is connected. */
  inFlight?: number
}

/** True: done. False: there is no such client or session. Or the reason why that is not known. */
type Outcome = boolean | { error: string }

/** What operators see of clients, sessions and retained messages, and do with them: on whichever node those are. */
export function createOperating(parts: {
  sessions: Sessions
  retained: RetainedMessages
  links: Links
  nodes: Nodes
  calls: Calls
}) {
  const { sessions, retained, links, nodes, calls } = parts
  calls.serve('clients', clientsHere)
  calls.serve('session-figures', figuresHere)
  calls.serve('disconnect', (clientId) => disconnectHere(String(clientId)))
  calls.serve('drop-session', (clientId) => dropHere(String(clientId)))

  return {
    /** The clients that are logged in. */
    async clients(): Promise<ClientView[]> {
      const others = await calls.askOthers('clients', null)
      return [...clientsHere(), ...others.flatMap(([, clients]) => clients as ClientView[])]
    },

    /** All sessions, connected or not. */
    async sessionList(): Promise<SessionView[]> {
      const others = await calls.askOthers('session-figures', null)
      const views = new Map(
        [...sessions.values()].map((session) => [
          session.clientId,
          toSessionView(session, sessions.expiresAt(session), nodes),
        ]),
      )
      for (const { clientId, dropped, inFlight } of others.flatMap(([, all]) => all as SessionFigures[])) {
        const view = views.get(clientId)
        if (view)
          Object.assign(view, { dropped: view.dropped + dropped, inFlight: inFlight ?? view.inFlight })
      }
      return [...views.values()]
    },

    /** Retained messages on topics that match the filter. */
    retainedList(filter: string): RetainedView[] {
      return retained.topics(filter).flatMap((topic) => {
        const value = retained.current(topic)
        return value ? [toRetainedView(value)] : []
      })
    },

    isConnected(clientId: string): boolean {
      const session = sessions.get(clientId)
      return session?.owner !== undefined || session?.node !== undefined
    },

    hasSession: (clientId: string): boolean => sessions.get(clientId) !== undefined,

    /** Closes the connection of a client id. False when it is not connected. */
    async disconnect(clientId: string): Promise<Outcome> {
      const node = nodeOf(sessions.get(clientId))
      return node === undefined ? disconnectHere(clientId) : askNode(node, 'disconnect', clientId)
    },

    /** Forgets a session and closes its connection. False when there is none. */
    async dropSession(clientId: string): Promise<Outcome> {
      const node = nodeOf(sessions.get(clientId))
      return node === undefined ? dropHere(clientId) : askNode(node, 'drop-session', clientId)
    },
  }

  async function askNode(node: string, name: string, clientId: string): Promise<Outcome> {
    const answer = await calls.ask(node, name, clientId)
    if (answer === undefined) return { error: `the node ${nodes.nameOf(node)} did not answer: try again` }
    return answer === true
  }

  /** The other node that has its client. */
  function nodeOf(session: Session | undefined): string | undefined {
    return session && isElsewhere(session) ? session.node : undefined
  }

  function clientsHere(): ClientView[] {
    return [...links.open].flatMap(({ connection, session }) =>
      session?.connection === connection ? [toClientView(session, connection, nodes.name)] : [],
    )
  }

  function figuresHere(): SessionFigures[] {
    return [...sessions.values()]
      .filter(({ dropped, owner }) => dropped > 0 || owner)
      .map(({ clientId, dropped, owner, inFlight }) => ({
        ...{ clientId, dropped },
        ...(owner && { inFlight: inFlight.size }),
      }))
  }

  function disconnectHere(clientId: string): boolean {
    const connection = sessions.get(clientId)?.owner
    connection?.cut('operator', 'disconnected by an operator')
    return connection !== undefined
  }

  async function dropHere(clientId: string): Promise<boolean> {
    const session = sessions.get(clientId)
    if (!session) return false
    // First, so that nothing more is taken into a session that nobody will find.
    session.owner?.cut('operator', 'session dropped by an operator')
    await sessions.drop(session)
    return true
  }
}
