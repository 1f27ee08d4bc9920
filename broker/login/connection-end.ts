import { type Principal, permissionKey } from '../../acl/principal.ts'
import type { Calls } from '../../store/nodes/calls.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Client, Clients } from '../connection/client.ts'
import type { MqttConnection } from '../connection/connection.ts'
import type { KnownSessions } from '../session/known-sessions.ts'
import type { Sessions } from '../session/sessions.ts'
import { ForeignSession } from './claim.ts'
import type { Wills } from './wills.ts'

export type ConnectionEnd = ReturnType<typeof createConnectionEnd>

/** Asks another node to end the older connection of a client id. `permission`: that of the client that logs in now. */
interface TakeOver {
  clientId: string
  permission: string
}

/** Handles the end of a connection, also when a newer connection takes over its client id. */
export function createConnectionEnd(parts: {
  sessions: Sessions
  wills: Wills
  known: KnownSessions
  clients: Clients
  calls: Calls
  log: Log
  metrics: Metrics
}) {
  const { sessions, wills, known, clients, calls, log, metrics } = parts
  calls.serve('take-over', async (asked) => {
    const { clientId, permission } = asked as TakeOver
    const session = sessions.get(clientId)
    // The asking node may not know this client and its permissions yet (design.md §5).
    if (session && session.permission !== permission) return 'foreign'
    const processing = [...(session?.processing.values() ?? [])]
    await takeOverHere(clientId)
    // This node answers only when the QoS 2 messages under way are settled. If the client repeats such a message, the
    // asking node must find it stored.
    await Promise.allSettled(processing)
    return 'taken over'
  })

  return {
    end,

    /**
     * Call this when a connection has ended. Cleans up its log-in, session and will. Resolves when its PUBLISHes are
     * settled.
     */
    async closed(connection: MqttConnection): Promise<void> {
      const client = clients.byConnection.get(connection)
      if (!client || !clients.open.delete(client)) return
      metrics.connections.dec()
      await end(client)
      const { session } = client
      if (session)
        log.info({ clientId: session.clientId, reason: connection.cutReason }, 'client disconnected')
      await client.lastPublishSettled
    },

    /**
     * Ends the older connection of a client id, on whatever node [MQTT-3.1.4-2]. If that node does not answer, the
     * log-in goes on, and its claim takes over the session.
     */
    async takeOver(clientId: string, principal: Principal): Promise<void> {
      await takeOverHere(clientId)
      const node = known.nodeOf(clientId)
      if (node === undefined) return
      const asked: TakeOver = { clientId, permission: permissionKey(principal) }
      if ((await calls.ask(node, 'take-over', asked)) === 'foreign') throw new ForeignSession()
    },
  }

  async function takeOverHere(clientId: string): Promise<void> {
    const older = sessions.get(clientId)?.connection
    const client = older && clients.byConnection.get(older)
    if (!client?.aedes) return
    const { aedes, connection } = client
    connection.cut('takeover', 'another connection with the same client id')
    await new Promise<void>((resolve) => aedes.close(resolve))
    await end(client)
  }

  async function end(client: Client, when?: 'before log-in'): Promise<void> {
    const { connection, session, willKey } = client
    client.endLogIn()
    client.freeWillRoom()
    const isVoid = when !== undefined || connection.hasSentDisconnect || connection.cutReason === 'revoked'
    const discarded = willKey && isVoid && wills.discard(willKey)
    try {
      // A new session must end if its client got no CONNACK: otherwise the next CONNACK would say "session present".
      const isUnknown = when !== undefined && !connection.sessionPresent
      if (session && isUnknown) await sessions.giveUp(session)
      else if (session) await sessions.leave(session)
    } catch (error) {
      metrics.storeFailures.inc()
      log.error({ err: error, clientId: session?.clientId }, 'end of connection not stored')
    }
    await discarded
  }
}
