import { createLocks } from '../../store/lock.ts'
import type { createRunningWork } from '../../store/running-work.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Client } from '../connection/client.ts'
import type { ConnectCredentials } from '../connection/connect-packet.ts'
import type { MqttConnection } from '../connection/connection.ts'
import { connackCode } from '../connection/protocol.ts'
import type { Reading } from '../fanout/reading.ts'
import type { Session } from '../session/session.ts'
import type { Sessions } from '../session/sessions.ts'
import { LogInRefused, type MqttLogIn } from './log-in.ts'
import type { Wills } from './wills.ts'

/**
 * Sends the CONNACK, and resolves with whether the client has got it and is still here. Without a return code, closes
 * the connection: many clients try again by themselves only if they got no CONNACK.
 */
export type SendConnack = (returnCode: number | undefined) => Promise<boolean>

/** Serves clients, each from its CONNECT to the end of its connection. */
export function createServing(parts: {
  logIn: MqttLogIn
  sessions: Sessions
  wills: Wills
  reading: Reading
  /** Work that must end before the broker closes its connections. */
  running: ReturnType<typeof createRunningWork>
  /** Whether the broker closes: then it lets no client in. */
  isClosing: () => boolean
  log: Log
  metrics: Metrics
}) {
  const { logIn, sessions, wills, reading, running, isClosing, log, metrics } = parts
  const logIns = createLocks()

  return {
    /** Serves a client that has sent its CONNECT. `client.served` tells when that has ended. */
    serve(client: Client, clientId: string, credentials: ConnectCredentials, answer: SendConnack): void {
      client.served = serve(client, clientId, enter(client, clientId, credentials, answer))
    },
  }

  /** Never rejects. Gets no credentials: as long as it runs, all that it gets stays in memory. */
  async function serve(client: Client, clientId: string, entering: Promise<boolean>): Promise<void> {
    running.add(entering)
    if (!(await entering)) return
    await client.closed
    const leaving = leave(client)
    running.add(Promise.all([leaving, client.lastPublishSettled]))
    await leaving
    log.info({ clientId, reason: client.connection.cutReason }, 'client disconnected')
  }

  /** Lets a client in, or refuses it. Resolves after the CONNACK, with whether the client is in. Never rejects. */
  async function enter(
    client: Client,
    clientId: string,
    credentials: ConnectCredentials,
    answer: SendConnack,
  ): Promise<boolean> {
    const { connection } = client
    try {
      const principal = await logIn.authenticate(client, clientId, credentials)
      // Only one log-in per client id runs at a time. The next one waits until this one has its CONNACK, or is undone.
      await logIns.hold(clientId, async () => {
        const session = await begin(client, () => logIn.begin(client, clientId, principal))
        const { remoteAddress, sessionPresent: resumed } = connection
        const { username } = principal
        log.info({ clientId, username, remoteAddress, resumed }, 'client connected')
        if (await answer(connackCode.accepted)) receive(session, connection)
      })
      return true
    } catch (error) {
      if (error instanceof LogInRefused) void answer(error.returnCode)
      else {
        metrics.storeFailures.inc()
        log.error({ err: error, clientId }, 'log-in not stored')
        connection.cut('error', 'the log-in could not be stored')
      }
      return false
    }
  }

  /** Begins a session. If its client cannot be let in then, removes its will and its new session, and rejects. */
  async function begin(client: Client, logInNow: () => Promise<Session>): Promise<Session> {
    try {
      const session = await logInNow()
      if (client.connection.destroyed || isClosing()) throw new LogInRefused(undefined)
      return session
    } catch (error) {
      await leave(client, 'without CONNACK')
      throw error
    }
  }

  /** Takes the packets behind the CONNECT, and sends messages from now on. */
  function receive(session: Session, connection: MqttConnection): void {
    session.outgoing = connection.open(session.inFlight)
    if (session.outgoing && !session.clean) reading.begin(session)
  }

  async function leave(client: Client, how?: 'without CONNACK'): Promise<void> {
    const { connection, session, willKey } = client
    client.freeWillRoom()
    const isVoid = how !== undefined || connection.hasSentDisconnect || connection.cutReason === 'revoked'
    const discarded = willKey && isVoid && wills.discard(willKey)
    try {
      // A new session must end if its client got no CONNACK: otherwise the next CONNACK would say "session present".
      if (session && how !== undefined && !connection.sessionPresent) await sessions.giveUp(session)
      else if (session) await sessions.leave(session)
    } catch (error) {
      metrics.storeFailures.inc()
      log.error({ err: error, clientId: session?.clientId }, 'end of connection not stored')
    }
    await discarded
  }
}
