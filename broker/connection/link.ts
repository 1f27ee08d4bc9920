import type { Client } from 'aedes'
import type { Session } from '../session/session.ts'
import type { MqttConnection } from './connection.ts'

/** One connection, the Aedes client that speaks for it, and what the broker knows of both. */
export interface Link {
  readonly connection: MqttConnection
  client: Client | undefined
  session: Session | undefined
  /** Ends the client's turn to log in; harmless when called again. */
  logInDone: () => void
  /** Gives back the room of its will; harmless when called again. */
  willGone: () => void
  /** Where its will is stored. */
  willKey: string | undefined
  /** Every PUBLISH of QoS 2 that Aedes has not asked about yet, as `acknowledged`; it asks in the order they came in. */
  readonly taken: Promise<boolean>[]
  /** Everything published so far is settled; false: the last of it must not be acknowledged. */
  acknowledged: Promise<boolean>
}

export type Links = ReturnType<typeof createLinks>

/** All links; a closed connection is found as long as somebody still speaks of it (its will, above all). */
export function createLinks() {
  const open = new Set<Link>()
  const byConnection = new WeakMap<object, Link>()
  return {
    open,
    add(connection: MqttConnection): Link {
      const link: Link = {
        connection,
        client: undefined,
        session: undefined,
        logInDone: () => {},
        willGone: () => {},
        willKey: undefined,
        taken: [],
        acknowledged: Promise.resolve(true),
      }
      open.add(link)
      byConnection.set(connection, link)
      return link
    },
    of: (connection: object): Link | undefined => byConnection.get(connection),
    /** The link of an Aedes client. Every client was made from a connection that was added. */
    ofClient(client: Client): Link {
      const link = byConnection.get(client.conn)
      if (!link) throw new Error('a client without connection')
      return link
    },
  }
}
