import type { Session } from '../session/session.ts'
import type { MqttConnection } from './connection.ts'
import type { ArrivedPublish } from './connection-events.ts'

/** The broker's state for one connection. */
export interface Client {
  readonly connection: MqttConnection
  aedes: { close(done: () => void): void } | undefined
  session: Session | undefined
  /** Lets the next log-in with this client id begin. A second call changes nothing. */
  endLogIn: () => void
  /** Gives back the room that the client's will takes (`createWillRoom`). A second call changes nothing. */
  freeWillRoom: () => void
  /** The key of the client's will in the store. Undefined: no will is stored. */
  willKey: string | undefined
  /** PUBLISHes that Aedes has not asked about yet, in the order of arrival. */
  readonly arrived: ArrivedPublish[]
  /** Resolves when the broker has finished all PUBLISHes so far. False: the last one must not be acknowledged. */
  lastPublishSettled: Promise<boolean>
}

export type Clients = ReturnType<typeof createClients>

/** All clients of this node. `byConnection` also finds a client whose connection is closed: its will may be due. */
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
        endLogIn: () => {},
        freeWillRoom: () => {},
        willKey: undefined,
        arrived: [],
        lastPublishSettled: Promise.resolve(true),
      }
      open.add(client)
      byConnection.set(connection, client)
      return client
    },
    byConnection: byConnection as Pick<typeof byConnection, 'get'>,
  }
}
