import { randomUUID } from 'node:crypto'
import { type Principal, permissionKey } from '../../acl/principal.ts'
import { originOf } from '../../listener/origin.ts'
import { createLocks } from '../../store/lock.ts'
import type { Calls } from '../../store/nodes/calls.ts'
import type { Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { createRareWarning } from '../../telemetry/rare-warning.ts'
import type { Client, Clients } from '../connection/client.ts'
import { createLoginLimit } from '../connection/limits.ts'
import { connackCode } from '../connection/wire.ts'
import type { KnownSessions } from '../session/known-sessions.ts'
import { ClientGone, ForeignSession, TooManySessions } from '../session/session.ts'
import type { Sessions } from '../session/sessions.ts'
import type { Access } from './access.ts'
import { createWillRoom, type Wills } from './wills.ts'

/** Beyond these no more wills are taken in of a credential: all that are taken in get published. */
const maxWaitingWills = 1_000

/** What one node asks another for: the client id, for a client with these permissions. */
interface TakeOver {
  clientId: string
  permission: string
}

/** The beginning and the end of a client's connection: log-in, session, will, take-over. */
export function createLogIn(parts: {
  store: Store
  sessions: Sessions
  known: KnownSessions
  wills: Wills
  clients: Clients
  calls: Calls
  /** The principal behind a log-in, or undefined. */
  authenticate: (username: string | undefined, password: Buffer | undefined) => Principal | undefined
  mayPublish: Access['mayPublish']
  /** Failed log-ins per address and minute; 0: no limit. */
  loginFailures: number
  log: Log
  metrics: Metrics
}) {
  const { store, sessions, known, wills, clients, calls, authenticate, log, metrics } = parts
  const logins = createLoginLimit(parts.loginFailures, store)
  const logIns = createLocks()
  const willRoom = createWillRoom()
  const tooManySessions = createRareWarning(log, 'too many persistent sessions of one credential')
  calls.serve('take-over', async (asked) => {
    const { clientId, permission } = asked as TakeOver
    const session = sessions.get(clientId)
    // The asking node may not know yet that others have the client id by now (design.md §5).
    if (session?.owner && session.permission !== permission) return 'foreign'
    const processing = [...(session?.processing.values() ?? [])]
    await takeOver(clientId)
    // A QoS 2 message on its way must be known as received wherever the client sends it again.
    await Promise.allSettled(processing)
    return 'taken over'
  })

  return {
    /** The log-in of a client: the return code of its CONNACK. Rejects when the store fails. */
    async admit(
      client: Client,
      clientId: string,
      login: { username: string | undefined; password: Buffer | undefined },
    ): Promise<number> {
      const { connection } = client
      const { remoteAddress } = connection
      const { username } = login
      const origin = originOf(remoteAddress).address
      if (await logins.isBlocked(origin)) {
        return refuse(client, 'too-many-failures', connackCode.serverUnavailable, username)
      }
      const principal = authenticate(username, login.password)
      if (!principal) {
        await logins.failed(origin)
        return refuse(client, 'credentials', connackCode.badCredentials, username)
      }
      // From here on a revocation finds the connection, also while it waits.
      connection.principal = principal
      // One log-in per client id at a time: a second one finds the first finished, and takes it over. Also where the
      // first one's client has gone: what the store is doing for it comes to an end before.
      const logInDone = await logIns.take(clientId)
      let isIn = false
      try {
        if (connection.destroyed) return connackCode.serverUnavailable
        if (!sessions.admits(clientId, principal)) {
          return refuse(client, 'client-id', connackCode.identifierRejected, username)
        }
        const { clean = true } = connection.request ?? {}
        // Nobody could come back to a session whose credential is gone in an hour.
        if (!clean && principal.role === 'subscriber' && principal.temporaryOf !== undefined) {
          return refuse(client, 'temporary', connackCode.notAuthorized, username)
        }
        if (!hasRoomForWill(client, principal)) {
          return refuse(client, 'too-many-wills', connackCode.serverUnavailable, username)
        }
        if (!sessions.hasRoom(clientId, clean, principal)) return refuseOneMore(client, principal)
        await takeOver(clientId)
        await takeOverElsewhere(clientId, principal)
        await begin(client, clientId, principal)
        isIn = !connection.destroyed
      } catch (error) {
        if (error instanceof ClientGone) return connackCode.serverUnavailable
        if (error instanceof TooManySessions) return refuseOneMore(client, principal)
        if (!(error instanceof ForeignSession)) throw error
        return refuse(client, 'client-id', connackCode.identifierRejected, username)
      } finally {
        if (isIn) client.logInDone = logInDone
        else {
          // It may have gone while the store worked; then nobody else will end what was begun.
          await end(client, 'before log-in')
          logInDone()
        }
      }
      log.info({ clientId, username, remoteAddress, resumed: connection.sessionPresent }, 'client connected')
      return connackCode.accepted
    },

    /** Whatever became of a connection: its log-in turn, its session and its will are settled. */
    async closed(client: Client): Promise<void> {
      if (!clients.open.delete(client)) return
      metrics.connections.dec()
      await end(client)
      const { connection, session } = client
      if (session)
        log.info({ clientId: session.clientId, reason: connection.cutReason }, 'client disconnected')
    },
  }

  /** Takes room for the will of a connection. One that is going to be denied is denied without its payload. */
  function hasRoomForWill(client: Client, principal: Principal): boolean {
    const { request } = client.connection
    if (!request?.will) return true
    const { username } = principal
    if (wills.waiting(username) >= maxWaitingWills) return false
    const isDenied = !parts.mayPublish(principal, request.will.topic).allowed
    if (isDenied) request.will = { ...request.will, payload: Buffer.alloc(0) }
    const giveBack = willRoom.take(username, request.will)
    client.willGone = giveBack ?? client.willGone
    return giveBack !== undefined
  }

  async function begin(client: Client, clientId: string, principal: Principal): Promise<void> {
    const { connection } = client
    const { clean = true, will } = connection.request ?? {}
    const { session, resumed } = await sessions.claim(clientId, clean, principal, connection)
    client.session = session
    connection.sessionPresent = resumed
    if (!will) return
    const key = wills.key(clientId, randomUUID())
    await store.commit([wills.change(key, clientId, principal, will)])
    client.willKey = key
  }

  async function end(client: Client, when?: 'before log-in'): Promise<void> {
    const { connection, session, willKey } = client
    client.logInDone()
    client.willGone()
    try {
      // A session that its client was never told of would come up later, and be taken for one that it knows.
      const isUnknown = when !== undefined && !connection.sessionPresent && session?.owner === connection
      if (session && isUnknown) await sessions.giveUp(session)
      else if (session) await sessions.release(session, connection)
      const isVoid = when !== undefined || connection.farewell || connection.cutReason === 'revoked'
      if (willKey && isVoid) await store.commit([{ del: willKey }])
    } catch (error) {
      metrics.storeFailures.inc()
      log.error({ err: error, clientId: session?.clientId }, 'end of connection not stored')
    }
  }

  /** [MQTT-3.1.4-2]: the client's older connection goes first, and is gone before the new one counts. */
  async function takeOver(clientId: string): Promise<void> {
    const older = sessions.get(clientId)?.owner
    const client = older && clients.of(older)
    if (!client?.aedes) return
    const { aedes, connection } = client
    connection.cut('takeover', 'another connection with the same client id')
    await new Promise<void>((resolve) => aedes.close(resolve))
    await end(client)
  }

  /** The same where the older connection is to another node. One that does not answer loses it all the same. */
  async function takeOverElsewhere(clientId: string, principal: Principal): Promise<void> {
    const node = known.nodeOf(clientId)
    if (node === undefined) return
    const asked: TakeOver = { clientId, permission: permissionKey(principal) }
    if ((await calls.ask(node, 'take-over', asked)) === 'foreign') throw new ForeignSession()
  }

  /** A client that makes a session at each start is not to fill the log as well. */
  function refuseOneMore({ connection }: Client, { username }: Principal): number {
    metrics.connectionsRefused.inc({ reason: 'too-many-sessions' })
    const { remoteAddress, request } = connection
    const held = known.persistentOf(username).size
    tooManySessions(username, { clientId: request?.clientId, username, remoteAddress, sessions: held })
    return connackCode.serverUnavailable
  }

  function refuse(client: Client, reason: string, returnCode: number, username: string | undefined): number {
    metrics.connectionsRefused.inc({ reason })
    const { remoteAddress, request } = client.connection
    log.warn({ clientId: request?.clientId, username, remoteAddress, reason }, 'log-in refused')
    return returnCode
  }
}
