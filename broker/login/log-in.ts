import { setTimeout as delay } from 'node:timers/promises'
import { isTemporary, type Principal } from '../../acl/principal.ts'
import type { ClientCertificate } from '../../certs/client-certificate.ts'
import { cut } from '../../event/cut.ts'
import type { LoginLimit } from '../../listener/login-limit.ts'
import { originOf } from '../../listener/origin.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics, RefusedReason } from '../../telemetry/metrics.ts'
import { createRareWarning } from '../../telemetry/rare-warning.ts'
import type { Client } from '../connection/client.ts'
import type { ConnectCredentials } from '../connection/connect-packet.ts'
import { connackCode } from '../connection/protocol.ts'
import type { ReturnTurns } from '../session/return-turns.ts'
import type { Session } from '../session/session.ts'
import type { Access } from './access.ts'
import { type Claims, ClientGone, PermissionsDiffer, TooManySessions } from './claim.ts'
import { createWillRoom, type Wills } from './wills.ts'

/**
 * A client at a blocked address waits so long for its refusal, milliseconds: some connect again at once, thousands of times a
 * second, and each time costs a TLS handshake (`findings/collectd-reconnects-without-pause.sh`).
 */
const blockedMs = 1_000

export type MqttLogIn = ReturnType<typeof createMqttLogIn>

/** The client is not let in. */
export class LogInRefused extends Error {
  /** The return code of the CONNACK. Undefined: the client gets none, because it is gone, or the node is going. */
  readonly returnCode: number | undefined

  constructor(returnCode: number | undefined) {
    super('log-in refused')
    this.returnCode = returnCode
  }
}

/** Decides about log-ins. Rejects with `LogInRefused`, or if the store fails. */
export function createMqttLogIn(parts: {
  access: Access
  failures: LoginLimit
  claims: Claims
  wills: Wills
  turns: ReturnTurns
  /** Whether the broker closes: then it lets no client in. */
  isClosing: () => boolean
  log: Log
  metrics: Metrics
}) {
  const { access, failures, claims, wills, turns, isClosing, log, metrics } = parts
  const willRoom = createWillRoom(wills, access.mayPublish)
  const { refusal, tooManySessions } = createRefusals({ claims, log, metrics })
  return { authenticate, begin }

  /** Finds out who the client is, and notes it in `connection.principal`. */
  async function authenticate(
    client: Client,
    clientId: string,
    { username, password }: ConnectCredentials,
  ): Promise<Principal> {
    const { remoteAddress, request } = client.connection
    const origin = originOf(remoteAddress).address
    if ((await failures.secondsBlocked(origin)) !== undefined) {
      await delay(blockedMs, undefined, { ref: false })
      throw refusal(client, 'too-many-failures', connackCode.serverUnavailable, username)
    }
    const { certificate } = client.connection
    const find = () => principalOf(certificate, username, password)
    const principal = find() ?? ((await access.caughtUp?.()) ? find() : undefined)
    if (!principal) {
      await failures.failed(origin)
      if (certificate && (username === undefined || 'username' in certificate))
        throw certificateRefusal(client, certificate, username)
      const isReader = username !== undefined && access.isReader?.(username)
      throw refusal(client, isReader ? 'reader' : 'credentials', connackCode.badCredentials, username)
    }
    const asked = request?.clientId ?? clientId
    if (access.isBanned?.(principal.username, asked, remoteAddress))
      throw refusal(client, 'banned', connackCode.notAuthorized, principal.username)
    const isWrongId = isTemporary(principal)
      ? !isPageId(asked)
      : !asked.startsWith(principal.clientIdPrefix ?? '')
    if (isWrongId) throw refusal(client, 'client-id', connackCode.identifierRejected, principal.username)
    // From this moment on, `disconnectUser` and `endBanned` must find the connection.
    client.connection.principal = principal
    return principal
  }

  /** A certificate that is not valid counts as none: the client may still have a password. */
  function principalOf(
    certificate: ClientCertificate | undefined,
    username: string | undefined,
    password: Buffer | undefined,
  ): Principal | undefined {
    if (certificate && 'username' in certificate) {
      const isOther = username !== undefined && username !== certificate.username
      return isOther ? undefined : access.certified?.(certificate.username)
    }
    return username === undefined ? access.anonymous : access.authenticate(username, password)
  }

  function certificateRefusal(
    client: Client,
    certificate: ClientCertificate,
    username: string | undefined,
  ): LogInRefused {
    const named = 'username' in certificate ? certificate.username : undefined
    const isOther = named !== undefined && username !== undefined && username !== named
    const problem = isOther
      ? 'its name is not the user name of the CONNECT'
      : 'its name is that of no credential'
    const about = { problem: 'problem' in certificate ? certificate.problem : problem }
    return refusal(client, 'certificate', connackCode.badCredentials, named ?? username, about)
  }

  /** Claims the session of the client, and stores its will. */
  async function begin(client: Client, clientId: string, principal: Principal): Promise<Session> {
    const { connection } = client
    const { username } = principal
    const { clean = true } = connection.request ?? {}
    if (!clean) await turns.enter('logIn', originOf(connection.remoteAddress).address)
    if (connection.destroyed || isClosing()) throw new LogInRefused(undefined)
    if (!claims.admits(clientId, principal)) {
      throw refusal(client, 'client-id', connackCode.identifierRejected, username)
    }
    // A temporary credential ends within an hour: afterwards nobody could resume its persistent session.
    if (!clean && isTemporary(principal)) {
      throw refusal(client, 'temporary', connackCode.notAuthorized, username)
    }
    if (!willRoom.take(client, principal)) {
      throw refusal(client, 'too-many-wills', connackCode.serverUnavailable, username)
    }
    const session = await claims.claim({ clientId, clean, principal, connection }).catch((error) => {
      if (error instanceof ClientGone) throw new LogInRefused(undefined)
      if (error instanceof TooManySessions) throw tooManySessions(client, principal)
      if (!(error instanceof PermissionsDiffer)) throw error
      throw refusal(client, 'client-id', connackCode.identifierRejected, username)
    })
    client.session = session
    const { will } = connection.request ?? {}
    if (will) {
      // `willKey` is set before the will is stored. If the commit fails, the store may still apply the commit. The end
      // of the connection needs the key to remove that will.
      client.willKey = wills.newKey(clientId)
      await wills.store(client.willKey, session, will, connection.remoteAddress)
    }
    return session
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
  const warn = createRareWarning(log, 'log-in refused')
  const warnOfTooMany = createRareWarning(log, 'too many persistent sessions of one credential')
  return { refusal, tooManySessions }

  /** Warns rarely: a client with a new client id at each start must not fill the log. */
  function tooManySessions({ connection }: Client, { username }: Principal): LogInRefused {
    metrics.connectionsRefused.inc({ reason: 'too-many-sessions' })
    connection.refused('too-many-sessions')
    const { remoteAddress, request } = connection
    const sessions = claims.persistentOf(username)
    warnOfTooMany(username, { clientId: request?.clientId, username, remoteAddress, sessions })
    return new LogInRefused(connackCode.serverUnavailable)
  }

  /** Warns rarely: somebody who guesses passwords must not fill the log. */
  function refusal(
    client: Client,
    reason: RefusedReason,
    returnCode: number,
    username: string | undefined,
    about: { problem?: string } = {},
  ): LogInRefused {
    metrics.connectionsRefused.inc({ reason })
    client.connection.refused(about.problem === undefined ? reason : `${reason}: ${about.problem}`)
    const { remoteAddress, request } = client.connection
    const tried = { clientId: shortened(request?.clientId), username: shortened(username) }
    const subject = `${reason} ${originOf(remoteAddress).address}`
    warn(subject, { ...tried, ...about, remoteAddress, reason })
    return new LogInRefused(returnCode)
  }
}

/** Shortens a text for the log: strangers must not fill the disk. */
function shortened(text: string | undefined): string | undefined {
  return text && cut(text, maxLogged)
}

const maxLogged = 200
