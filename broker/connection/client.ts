import type { Session } from '../session/session.ts'
import type { MqttConnection } from './connection.ts'
import type { ArrivedPublish } from './connection-events.ts'

/** One connection, its client in Aedes, and what the broker knows of both. */
export interface Client {
  readonly connection: MqttConnection
  aedes: { close(done: () => void): void } | undefined
  session: Session | undefined
  /** Ends the client's log-in; harmless when called again. */
  logInDone: () => void
  /** Frees the room that its will takes among the wills of its credential; harmless when called again. */
  willGone: () => void
  /** The key under which its will is stored. */
  willKey: string | undefined
  /** Every PUBLISH that Aedes has not asked about yet. Aedes asks in the order of arrival. */
  readonly arrived: ArrivedPublish[]
  /** Resolves when everything published so far is settled. False: the last PUBLISH must not be acknowledged. */
  acknowledged: Promise<boolean>
}

export type Clients = ReturnType<typeof createClients>

/**
 * All clients. `open` has those whose connection is open. `of` also finds a client after the end of its connection, as
 * long as something refers to the connection, above all its will.
 */
export function createClients() {
  const open = new Set<Client>()
  const byConnection = new WeakMap<object, Client>()
  return {
    open,
    add(connection: MqttConnection): Client {
      const client: Client = {
        connection,
        aedes: undefined,
        session: undefined,
        logInDone: () => {},
        willGone: () => {},
        willKey: undefined,
        arrived: [],
        acknowledged: Promise.resolve(true),
      }
      open.add(client)
      byConnection.set(connection, client)
      return client
    },
    of: (connection: object): Client | undefined => byConnection.get(connection),
    /** The client that Aedes asks about. Aedes has only clients whose connection was added. */
    ofAedes(from: { conn: object }): Client {
      const client = byConnection.get(from.conn)
      if (!client) throw new Error('a client without connection')
      return client
    },
  }
}
