import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { Aedes, type AuthenticateError, type Client, type Subscription } from 'aedes'
import type { Principal } from '../acl/principal.ts'
import type { Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createAdmission } from './admission.ts'
import { createInertEmitter, createPersistence } from './aedes-parts.ts'
import { type ConnectionLimits, type CutReason, MqttConnection } from './connection.ts'
import { createDistribution, type Routes } from './distribution.ts'
import { createPublishRate } from './limits.ts'
import { createLinks } from './link.ts'
import { openOutbox } from './outbox.ts'
import { createReceiving } from './receiving.ts'
import { openRetained } from './retained.ts'
import type { Session } from './session.ts'
import { openSessions } from './sessions.ts'
import { createSubscriptions } from './subscriptions.ts'
import { type ClientView, type RetainedView, toClientView, toRetainedView, toSessionView } from './views.ts'
import { createWills } from './wills.ts'
import type { Qos } from './wire.ts'

export type Broker = Awaited<ReturnType<typeof createBroker>>

/** Who may connect and what they may do; `acl/` in the hub. */
export interface Access {
  /** The principal behind a log-in, or undefined. */
  authenticate(username: string, password: Buffer | undefined): Principal | undefined
  /** Who a client without user name is; absent: nobody gets in. */
  anonymous?: Principal
  maySubscribe(principal: Principal, filter: string): { allowed: true } | { allowed: false; reason: string }
  mayReceive(principal: Principal, topic: string): boolean
}

export interface BrokerLimits extends ConnectionLimits {
  /** Time for a CONNECT to arrive, milliseconds. */
  connectTimeoutMs: number
  /** Failed log-ins per address and minute; 0: no limit. */
  loginFailures: number
  /** Events per second and credential, burst twice that; 0: no limit. */
  publishRate: number
  /** Messages queued for one offline session. */
  queueLimit: number
  /** How long an offline session is kept, milliseconds. */
  sessionExpiryMs: number
}

/** Between two looks for expired retained messages and sessions. */
const sweepIntervalMs = 30_000
/** Aedes' heartbeat tells other brokers of a cluster that it lives; nobody listens to it here. */
const heartbeatIntervalMs = 24 * 3600 * 1000

/**
 * The MQTT 3.1.1 broker: Aedes speaks the protocol (log-in, subscriptions, inbound QoS), the files beside
 * this one decide, store and deliver. This is the one place that knows Aedes' callbacks.
 */
export async function createBroker(parts: {
  store: Store
  access: Access
  limits: BrokerLimits
  clock: () => number
  log: Log
  metrics: Metrics
}) {
  const { store, access, limits, clock, log, metrics } = parts
  const mayReceive = (session: Session, topic: string) => access.mayReceive(session.principal, topic)
  const routes: Routes = { stored: createSubscriptions<Session>(), live: createSubscriptions<Session>() }
  const outbox = await openOutbox({ store, clock, queueLimit: limits.queueLimit, mayReceive, log, metrics })
  const sessions = await openSessions({ store, outbox, routes, clock, expiryMs: limits.sessionExpiryMs })
  const retained = await openRetained(store, clock)
  const distribution = createDistribution({ store, retained, outbox, routes, mayReceive, clock, metrics })
  const wills = createWills(store)
  const links = createLinks()
  const admission = createAdmission({
    ...{ store, sessions, outbox, wills, links, log, metrics },
    authenticate: (username, password) =>
      username === undefined ? access.anonymous : access.authenticate(username, password),
    loginFailures: limits.loginFailures,
  })
  const receiving = createReceiving({ store, wills, clock, log, metrics })
  const publishRate = createPublishRate(limits.publishRate)
  const unfinished = createUnfinished()

  const aedes = new Aedes({
    id: randomUUID(),
    mq: createInertEmitter(),
    persistence: createPersistence({
      subscriptions: (clientId) =>
        [...(sessions.get(clientId)?.subscriptions ?? [])].map(([topic, qos]) => ({ topic, qos })),
      storeSubscriptions,
      unsubscribed: async (clientId, filters) => {
        const session = sessions.get(clientId)
        for (const filter of filters) if (session) sessions.unsubscribe(session, filter)
        await storeSubscriptions(clientId)
      },
      isIncoming: (clientId, packetId) => sessions.get(clientId)?.incoming.has(packetId) ?? false,
      releaseIncoming: async (clientId, packetId) => {
        const session = sessions.get(clientId)
        if (session) await receiving.release(session, packetId)
      },
    }),
    heartbeatInterval: heartbeatIntervalMs,
    connectTimeout: limits.connectTimeoutMs,
    // The connection bounds what waits in either direction.
    drainTimeout: 0,
    queueLimit: Number.MAX_SAFE_INTEGER,
    authenticate: (client, username, password, done) => {
      const login = {
        username: username === undefined ? undefined : String(username),
        password: password ? Buffer.from(password) : undefined,
      }
      admission.admit(links.ofClient(client), client.id, login).then(
        (returnCode) => (returnCode === 0 ? done(null, true) : done(refusal(returnCode), false)),
        (error: unknown) => {
          metrics.storeFailures.inc()
          log.error({ err: error, clientId: client.id }, 'log-in not stored')
          done(refusal(3), false)
        },
      )
    },
    authorizePublish: (client, packet, done) => {
      if (!client) return done(null)
      const link = links.ofClient(client)
      // A will is handed over as it stood in the CONNECT: it has no packet type.
      const taken = packet.cmd === undefined ? receiving.will(link) : receiving.publish(link)
      unfinished.add(taken)
      taken.then(() => done(null), done)
    },
    authorizeSubscribe: (client, subscription, done) => {
      done(null, authorizeSubscribe(client, subscription) ? subscription : null)
    },
    authorizeForward: () => null,
  })
  await aedes.listen()
  aedes.on('clientReady', (client) => {
    const { connection, session, logInDone } = links.ofClient(client)
    logInDone()
    if (session?.owner !== connection) return
    session.connection = connection
    connection.open()
    if (!session.clean) void outbox.connected(session)
  })
  aedes.on('subscribe', (answered, client) => {
    const granted = new Map(answered.flatMap(({ topic, qos }) => (isQos(qos) ? [[topic, qos]] : [])))
    void replay(links.ofClient(client).session, granted)
  })
  aedes.on('unsubscribe', (filters, client) => {
    const { session } = links.ofClient(client)
    for (const filter of filters) if (session) sessions.unsubscribe(session, filter)
  })
  aedes.on('connectionError', (client, error) => cutFor(client, error))
  aedes.on('clientError', (client, error) => cutFor(client, error))

  const sweepTimer = setInterval(() => {
    Promise.all([retained.sweep(), sessions.sweep()]).catch((error: unknown) => {
      metrics.storeFailures.inc()
      log.error({ err: error }, 'expired messages and sessions not removed')
    })
  }, sweepIntervalMs)
  sweepTimer.unref()

  return {
    distribute: distribution.distribute,
    announce: distribution.announce,
    retained,
    sessions,
    /** Sets what happens with publishes; call it before the first connection. */
    start: receiving.start,

    /** Takes over a connected stream. */
    accept(socket: Duplex, remoteAddress: string): void {
      const connection = new MqttConnection(socket, remoteAddress, limits, {
        acknowledged: (type, packetId) => {
          if (link.session?.owner === connection) outbox.acknowledge(link.session, type, packetId)
        },
        cut: (reason, detail) => logCut(connection, reason, detail),
        dropped: () => metrics.messagesDropped.inc({ reason: 'slow' }),
        publishing: () => publishRate.take(connection.principal?.username ?? '', performance.now()),
      })
      const link = links.add(connection)
      metrics.connections.inc()
      link.client = aedes.handle(connection)
      connection.once('close', () => unfinished.add(admission.closed(link)))
    },

    connectionCount: () => links.open.size,

    /** The clients that are logged in. */
    clients(): ClientView[] {
      return [...links.open].flatMap(({ connection, session }) =>
        session?.connection === connection ? [toClientView(session, connection)] : [],
      )
    },

    /** All sessions, connected or not. */
    sessionList: () =>
      [...sessions.values()].map((session) => toSessionView(session, limits.sessionExpiryMs)),

    /** Retained messages on topics that match the filter. */
    retainedList(filter: string): RetainedView[] {
      return retained.topics(filter).flatMap((topic) => {
        const value = retained.current(topic)
        return value ? [toRetainedView(value)] : []
      })
    },

    /** Closes the connection of a client id. False when it is not connected. */
    disconnect(clientId: string): boolean {
      const connection = sessions.get(clientId)?.owner
      connection?.cut('operator', 'disconnected by an operator')
      return connection !== undefined
    },

    /** Closes every connection that logged in with this username. */
    disconnectUser(username: string): void {
      for (const { connection } of links.open) {
        if (connection.principal?.username === username) connection.cut('revoked', 'credential revoked')
      }
    },

    /** Forgets a session and closes its connection. False when there is none. */
    async dropSession(clientId: string): Promise<boolean> {
      const session = sessions.get(clientId)
      if (!session) return false
      const connection = session.owner
      await sessions.drop(session)
      connection?.cut('operator', 'session dropped by an operator')
      return true
    },

    /** Finishes what was received, closes all connections, stores what is left. */
    async close(): Promise<void> {
      clearInterval(sweepTimer)
      for (const { connection } of links.open) connection.stopReading()
      await unfinished.settled()
      await new Promise<void>((resolve) => aedes.close(() => resolve()))
      for (const { connection } of links.open) connection.destroy()
      await unfinished.settled()
      await outbox.close()
    },
  }

  function authorizeSubscribe(client: Client, { topic, qos }: Subscription): boolean {
    const { session, connection } = links.ofClient(client)
    if (!session || !isQos(qos)) return false
    const decision = access.maySubscribe(session.principal, topic)
    if (decision.allowed) {
      sessions.subscribe(session, topic, qos)
      return true
    }
    sessions.unsubscribe(session, topic)
    metrics.subscriptionsDenied.inc()
    const { username } = session.principal
    const { reason } = decision
    log.warn({ clientId: session.clientId, username, filter: topic, reason }, 'subscription denied')
    // A restored filter that is no longer permitted must not come back at the next connect.
    if (!connection.isOpen) unfinished.add(storeSubscriptions(session.clientId))
    return false
  }

  async function storeSubscriptions(clientId: string): Promise<void> {
    const session = sessions.get(clientId)
    if (session) await sessions.storeSubscriptions(session)
  }

  async function replay(session: Session | undefined, granted: ReadonlyMap<string, Qos>): Promise<void> {
    if (!session) return
    try {
      await distribution.replay(session, granted)
    } catch (error) {
      metrics.storeFailures.inc()
      log.error({ err: error, clientId: session.clientId }, 'retained messages not delivered')
      session.connection?.cut('error', 'retained messages not delivered')
    }
  }

  function cutFor(client: Client, error: Error): void {
    links.ofClient(client).connection.cut('error', error.message)
  }

  function logCut({ remoteAddress, request }: MqttConnection, reason: CutReason, detail: string): void {
    metrics.connectionsCut.inc({ reason })
    const level = reason === 'takeover' || reason === 'operator' ? 'info' : 'warn'
    log[level]({ clientId: request?.clientId, remoteAddress, reason, detail }, 'connection closed')
  }
}

function isQos(qos: number): qos is Qos {
  return qos <= 2
}

function refusal(returnCode: number): AuthenticateError {
  return Object.assign(new Error('log-in refused'), { returnCode })
}

/** Work that must be over before the store is closed. Its outcome is somebody else's business. */
function createUnfinished() {
  const running = new Set<Promise<void>>()
  return {
    add(work: Promise<unknown>): void {
      const over = work.then(
        () => {},
        () => {},
      )
      running.add(over)
      void over.then(() => running.delete(over))
    },
    async settled(): Promise<void> {
      while (running.size > 0) await Promise.all(running)
    },
  }
}
