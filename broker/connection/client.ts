import type { Metrics } from '../../telemetry/metrics.ts'
import type { Session } from '../session/session.ts'
import type { MqttConnection } from './connection.ts'

/** The broker's state for one connection. */
export interface Client {
  readonly connection: MqttConnection
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>
  /** Resolves when the client has gone, and the end of its session is stored. */
  served: Promise<void>
  session: Session | undefined
  /** Gives back the room that the client's will takes (`createWillRoom`). A second call changes nothing. */
  freeWillRoom: () => void
  /** The key of the client's will in the store. Undefined: no will is stored. */
  willKey: string | undefined
  /** Resolves when the broker has finished all PUBLISHes so far. False: the last one must not be acknowledged. */
  lastPublishSettled: Promise<boolean>
}

export type Clients = ReturnType<typeof createClients>

/** All clients of this node. `byConnection` also finds a client whose connection is closed: its will may be due. */
export function createClients(metrics: Metrics) {
  const open = new Set<Client>()
  const byConnection = new WeakMap<object, Client>()
  return {
    open,
    add(connection: MqttConnection): Client {
      const client: Client = {
        connection,
        closed: new Promise((resolve) =>
          connection.once('close', () => {
            open.delete(client)
            metrics.connections.dec()
            resolve()
          }),
        ),
        served: settled,
        session: undefined,
        freeWillRoom: nothing,
        willKey: undefined,
        lastPublishSettled: settledWell,
      }
      byConnection.set(connection, client)
      open.add(client)
      metrics.connections.inc()
      return client
    },
    byConnection: byConnection as Pick<typeof byConnection, 'get'>,
  }
}

// Shared by all clients, of which most do nothing but listen.
const nothing = () => {}
const settled = Promise.resolve()
const settledWell = Promise.resolve(true)
