import { isTemporary, type Principal } from '../../acl/principal.ts'
import { cut } from '../../event/cut.ts'
import { originOf } from '../../listener/origin.ts'
import { createLocks } from '../../store/lock.ts'
import type { createRunningWork } from '../../store/running-work.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics, RefusedReason } from '../../telemetry/metrics.ts'
import { createRareWarning } from '../../telemetry/rare-warning.ts'
import type { Client } from '../connection/client.ts'
import type { LoginLimit } from '../connection/limits.ts'
import { connackCode } from '../connection/protocol.ts'
import type { Reading } from '../fanout/reading.ts'
import type { ReturnTurns } from '../session/return-turns.ts'
import type { Access } from './access.ts'
import { type Claims, ClientGone, ForeignSession, TooManySessions } from './claim.ts'
import type { ConnectionEnd } from './connection-end.ts'
import { createWillRoom, type Wills } from './wills.ts'

/** The user name and password of a CONNECT. */
interface Login {
  username: string | undefined
  password: Buffer | undefined
}

/** Handles log-ins: from the CONNECT of a client until its session begins to send. */
export function createLogIn(parts: {
  access: Access
  failures: LoginLimit
  claims: Claims
  connectionEnd: ConnectionEnd
  wills: Wills
  reading: Reading
  turns: ReturnTurns
  /** Work that must end before the broker closes its connections. */
  running: ReturnType<typeof createRunningWork>
  /** Whether the broker closes: then it lets no client in. */
  isClosing: () => boolean
  log: Log
  metrics: Metrics
}) {
  const { access, failures, claims, connectionEnd, wills, reading, turns, running, isClosing, log, metrics } =
    parts
  const logIns = createLocks()
  const willRoom = createWillRoom(wills, access.mayPublish)
  const { refuse, refuseTooManySessions } = createRefusals({ claims, log, metrics })

  return {
    /**
     * Decides about a log-in: resolves with the return code of its CONNACK. Undefined: the client gets none, because it
     * is gone, or the node is going. Rejects when the store fails.
     */
    async admit(client: Client, clientId: string, login: Login): Promise<number | undefined> {
      try {
        const admitted = letIn(client, clientId, login)
        running.add(admitted)
        return await admitted
      } catch (err) {
        metrics.storeFailures.inc()
        log.error({ err, clientId }, 'log-in not stored')
        throw err
      }
    },

    /** Call this when Aedes has sent the CONNACK. The session begins to send messages to its client. */
    ready({ connection, session, endLogIn }: Client): void {
      endLogIn()
      if (session?.connection !== connection) return
      session.outgoing = connection.outgoing
      connection.open(session.inFlight)
      if (!session.clean) reading.begin(session)
    },
  }

  async function letIn(
    client: Client,
    clientId: string,
    { username, password }: Login,
  ): Promise<number | undefined> {
    const { connection } = client
    const { remoteAddress } = connection
    const origin = originOf(remoteAddress).address
    if (await failures.isBlocked(origin)) {
      return refuse(client, 'too-many-failures', connackCode.serverUnavailable, username)
    }
    const principal = username === undefined ? access.anonymous : access.authenticate(username, password)
    if (!principal) {
      await failures.failed(origin)
      return refuse(client, 'credentials', connackCode.badCredentials, username)
    }
    if (isTemporary(principal) && !isPageId(connection.request?.clientId ?? clientId)) {
      return refuse(client, 'client-id', connackCode.identifierRejected, username)
    }
    // `disconnectUser` must find this connection if the credential is revoked while the log-in waits.
    connection.principal = principal
    // Only one log-in per client id runs at a time. The next one waits until this one has its CONNACK, or is undone.
    const logInDone = await logIns.take(clientId)
    let isIn = false
    try {
      const returnCode = await startSession(client, clientId, principal, username)
      if (returnCode !== connackCode.accepted) return returnCode
      isIn = !connection.destroyed && !isClosing()
    } catch (error) {
      if (error instanceof ClientGone) return undefined
      if (error instanceof TooManySessions) return refuseTooManySessions(client, principal)
      if (!(error instanceof ForeignSession)) throw error
      return refuse(client, 'client-id', connackCode.identifierRejected, username)
    } finally {
      if (isIn) client.endLogIn = logInDone
      else {
        // The client is not let in. So the hub must remove its will and its new session. `connectionEnd.closed` cannot
        // do so if it ran before they existed.
        await connectionEnd.end(client, 'before log-in')
        logInDone()
      }
    }
    if (!isIn) return undefined
    log.info({ clientId, username, remoteAddress, resumed: connection.sessionPresent }, 'client connected')
    return connackCode.accepted
  }

  async function startSession(
    client: Client,
    clientId: string,
    principal: Principal,
    username: string | undefined,
  ): Promise<number | undefined> {
    const { connection } = client
    const { clean = true } = connection.request ?? {}
    if (!clean) await turns.enter('logIn', originOf(connection.remoteAddress).address)
    if (connection.destroyed || isClosing()) return undefined
    if (!claims.admits(clientId, principal)) {
      return refuse(client, 'client-id', connackCode.identifierRejected, username)
    }
    // A temporary credential ends within an hour: afterwards nobody could resume its persistent session.
    if (!clean && isTemporary(principal)) {
      return refuse(client, 'temporary', connackCode.notAuthorized, username)
    }
    if (!willRoom.take(client, principal)) {
      return refuse(client, 'too-many-wills', connackCode.serverUnavailable, username)
    }
    if (!claims.hasRoom(clientId, clean, principal)) return refuseTooManySessions(client, principal)
    await connectionEnd.takeOver(clientId, principal)
    const { session, resumed } = await claims.claim(clientId, clean, principal, connection)
    client.session = session
    connection.sessionPresent = resumed
    const { will } = connection.request ?? {}
    if (will) {
      // `willKey` is set before the will is stored. If the commit fails, the store may still apply the commit.
      // `connectionEnd.end` needs the key to remove that will.
      client.willKey = wills.newKey(clientId)
      await wills.store(client.willKey, session, will)
    }
    return connackCode.accepted
  }
}

/**
 * Whether a client with a temporary credential may use this client id. Strangers can have such a credential. They must
 * not block the client ids of publishers and subscribers.
 */
function isPageId(clientId: string): boolean {
  return clientId === '' || clientId.startsWith('page-')
}

function createRefusals({ claims, log, metrics }: { claims: Claims; log: Log; metrics: Metrics }) {
  const warnOfRefused = createRareWarning(log, 'log-in refused')
  const tooManySessions = createRareWarning(log, 'too many persistent sessions of one credential')
  return { refuse, refuseTooManySessions }

  /** Warns rarely: a client with a new client id at each start must not fill the log. */
  function refuseTooManySessions({ connection }: Client, { username }: Principal): number {
    metrics.connectionsRefused.inc({ reason: 'too-many-sessions' })
    const { remoteAddress, request } = connection
    const sessions = claims.persistentOf(username)
    tooManySessions(username, { clientId: request?.clientId, username, remoteAddress, sessions })
    return connackCode.serverUnavailable
  }

  /** Refuses a log-in. Warns rarely: somebody who guesses passwords must not fill the log. */
  function refuse(
    client: Client,
    reason: RefusedReason,
    returnCode: number,
    username: string | undefined,
  ): number {
    metrics.connectionsRefused.inc({ reason })
    const { remoteAddress, request } = client.connection
    const tried = { clientId: shortened(request?.clientId), username: shortened(username) }
    const subject = `${reason} ${originOf(remoteAddress).address}`
    warnOfRefused(subject, { ...tried, remoteAddress, reason })
    return returnCode
  }
}

/** Shortens a text for the log: strangers must not fill the disk. */
function shortened(text: string | undefined): string | undefined {
  return text && cut(text, maxLogged)
}

const maxLogged = 200
