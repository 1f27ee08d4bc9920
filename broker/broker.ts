import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { Aedes, type AuthenticateError, type Client, type PublishPacket, type Subscription } from 'aedes'
import type { Principal } from '../acl/principal.ts'
import type { Change, Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createInertEmitter, createPersistence } from './aedes-parts.ts'
import { type ArrivedPublish, type ConnectionLimits, type CutReason, MqttConnection } from './connection.ts'
import { createDistribution, type Routes } from './distribution.ts'
import { createLoginLimit, createPublishRate } from './limits.ts'
import { openOutbox, sequenceTime } from './outbox.ts'
import { openRetained, type RetainedValue } from './retained.ts'
import type { Session } from './session.ts'
import { incomingKey, openSessions } from './sessions.ts'
import { createSubscriptions } from './subscriptions.ts'
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

/** A PUBLISH or will of a client. */
export interface Received {
  principal: Principal
  clientId: string
  topic: string
  payload: Buffer
  qos: Qos
  retain: boolean
  isWill: boolean
  /** Wall clock, milliseconds since the epoch. */
  at: number
  /** `performance.now()` at the arrival of its last byte. */
  started: number
  /** Must be stored with the decision, or not at all. */
  alongside: readonly Change[]
}

/** Decides and stores what a client published. True: it may be acknowledged; false: nothing was stored. */
export type Receive = (received: Received) => Promise<boolean>

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

/** Received QoS 2 messages one client may leave unreleased. */
const incomingWindow = 1000
const sweepIntervalMs = 30_000

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
  const logins = createLoginLimit(limits.loginFailures)
  const publishRate = createPublishRate(limits.publishRate)
  const links = new Map<MqttConnection, Link>()
  const logIns = createTurns()
  const working = new Set<Promise<unknown>>()
  let receive: Receive = async () => false

  const aedes = new Aedes({
    id: randomUUID(),
    mq: createInertEmitter(),
    persistence: createPersistence({
      subscriptions: (clientId) =>
        [...(sessions.get(clientId)?.subscriptions ?? [])].map(([topic, qos]) => ({ topic, qos })),
      storeSubscriptions: (clientId) => storeSubscriptions(clientId),
      unsubscribed: async (clientId, filters) => {
        const session = sessions.get(clientId)
        for (const filter of filters) if (session) sessions.unsubscribe(session, filter)
        await storeSubscriptions(clientId)
      },
      isIncoming: (clientId, packetId) => sessions.get(clientId)?.incoming.has(packetId) ?? false,
      releaseIncoming,
    }),
    // Kept short of their defaults only where a hazard hides behind them; nothing is distributed here.
    heartbeatInterval: 24 * 3600 * 1000,
    connectTimeout: limits.connectTimeoutMs,
    drainTimeout: 0,
    queueLimit: Number.MAX_SAFE_INTEGER,
    authenticate: (client, username, password, done) => {
      const asText = username === undefined ? undefined : String(username)
      admit(client, asText, password ? Buffer.from(password) : undefined).then(
        (returnCode) => (returnCode === 0 ? done(null, true) : done(refusal(returnCode), false)),
        (error: unknown) => {
          log.error({ err: error }, 'log-in failed')
          done(refusal(3), false)
        },
      )
    },
    authorizePublish: (client, packet, done) => {
      track(takePublish(client, packet)).then(() => done(null), done)
    },
    authorizeSubscribe: (client, subscription, done) => {
      done(null, authorizeSubscribe(client, subscription) ? subscription : null)
    },
    authorizeForward: () => null,
  })
  await aedes.listen()

  aedes.on('clientReady', (client) => {
    const link = linkOf(client)
    link.logInDone()
    const { session } = link
    if (!session || session.owner !== link.connection) return
    session.connection = link.connection
    link.connection.open()
    if (!session.clean) void outbox.connected(session)
  })
  aedes.on('subscribe', (granted, client) => {
    const session = linkOf(client).session
    if (!session) return
    const filters = new Map<string, Qos>()
    for (const { topic, qos } of granted) if (qos <= 2) filters.set(topic, qos as Qos)
    distribution.replay(session, filters).catch((error: unknown) => {
      log.error({ err: error, clientId: session.clientId }, 'retained messages not delivered')
      session.connection?.cut('error', 'retained messages not delivered')
    })
  })
  aedes.on('unsubscribe', (filters, client) => {
    const session = linkOf(client).session
    for (const filter of filters) if (session) sessions.unsubscribe(session, filter)
  })
  aedes.on('connectionError', (client, error) => cutFor(client, error))
  aedes.on('clientError', (client, error) => cutFor(client, error))

  const sweepTimer = setInterval(() => {
    Promise.all([retained.sweep(), sessions.sweep()]).catch((error: unknown) =>
      log.error({ err: error }, 'expired messages and sessions not removed'),
    )
  }, sweepIntervalMs)
  sweepTimer.unref()

  return {
    distribute: distribution.distribute,
    announce: distribution.announce,
    retained,
    sessions,

    /** Sets what happens with publishes, and publishes the wills that a dead node left behind. */
    async start(onReceived: Receive): Promise<void> {
      receive = onReceived
      for (const { key, ...will } of await wills.leftOver()) {
        const now = { at: clock(), started: performance.now() }
        await receive({ ...will, isWill: true, ...now, alongside: [{ del: key }] })
      }
    },

    /** Takes over a connected stream. */
    accept(socket: Duplex, remoteAddress: string): void {
      const connection = new MqttConnection(socket, remoteAddress, limits, {
        acknowledged: (_connection, type, packetId) => {
          const session = link.session
          if (session?.owner === connection) outbox.acknowledge(session, type, packetId)
        },
        cut: logCut,
        dropped: () => metrics.messagesDropped.inc({ reason: 'slow' }),
        publishing: () => publishRate.take(connection.principal?.username ?? '', performance.now()),
      })
      const link: Link = {
        connection,
        client: undefined,
        session: undefined,
        logInDone: () => {},
        willKey: undefined,
        acknowledged: Promise.resolve(),
        processing: new Map(),
      }
      links.set(connection, link)
      metrics.connections.inc()
      connection.once('close', () => track(forget(link)))
      link.client = aedes.handle(connection)
    },

    /** The clients that are logged in. */
    clients(): ClientView[] {
      return [...links.values()].flatMap(({ connection, session }) =>
        session?.connection === connection ? [toView(session, connection)] : [],
      )
    },

    connectionCount: () => links.size,

    /** All sessions, connected or not. */
    sessionList: () => [...sessions.values()].map(toSessionView),

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
      for (const { connection } of links.values()) {
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
      for (const connection of links.keys()) connection.stopReading()
      await settled()
      await new Promise<void>((resolve) => aedes.close(() => resolve()))
      for (const connection of links.keys()) connection.destroy()
      await settled()
      await outbox.close()
    },
  }

  /** The log-in of a client: 0, or the CONNACK return code that refuses it (MQTT 3.1.1 §3.2.2.3). */
  async function admit(
    client: Client,
    username: string | undefined,
    password: Buffer | undefined,
  ): Promise<number> {
    const link = linkOf(client)
    const { connection } = link
    const { remoteAddress } = connection
    if (await logins.isBlocked(remoteAddress)) return refuse(link, 'too-many-failures', 3)
    const principal = username === undefined ? access.anonymous : access.authenticate(username, password)
    if (!principal) {
      await logins.failed(remoteAddress)
      return refuse(link, 'credentials', 4, username)
    }
    // One log-in per client id at a time: a second one finds the first finished, and takes it over.
    link.logInDone = await logIns.take(client.id)
    connection.principal = principal
    if (connection.destroyed) {
      link.logInDone()
      return 3
    }
    if (!sessions.admits(client.id, principal)) return refuse(link, 'client-id', 2, username)
    await takeOver(client.id)
    const clean = connection.request?.clean ?? true
    const { session, resumed } = await sessions.claim(client.id, clean, principal, connection)
    link.session = session
    connection.sessionPresent = resumed
    const will = connection.request?.will
    if (will) {
      link.willKey = wills.key(client.id, outbox.nextSequence())
      await store.commit([wills.change(link.willKey, client.id, principal, will)])
    }
    log.info({ clientId: client.id, username, remoteAddress, resumed }, 'client connected')
    return 0
  }

  function refuse(link: Link, reason: string, returnCode: number, username?: string): number {
    metrics.connectionsRefused.inc({ reason })
    const { remoteAddress, request } = link.connection
    log.warn({ clientId: request?.clientId, username, remoteAddress, reason }, 'log-in refused')
    return returnCode
  }

  /** [MQTT-3.1.4-2]: the client's older connection goes first, and is gone before the new one counts. */
  async function takeOver(clientId: string): Promise<void> {
    const older = sessions.get(clientId)?.owner
    const link = older && links.get(older)
    if (!link?.client) return
    const { client, connection } = link
    connection.cut('takeover', 'another connection with the same client id')
    await new Promise<void>((resolve) => client.close(resolve))
    await forget(link)
  }

  /** Whatever became of a connection: its session, its log-in turn and its will are settled. */
  async function forget(link: Link): Promise<void> {
    const { connection, session } = link
    if (!links.delete(connection)) return
    metrics.connections.dec()
    link.logInDone()
    try {
      if (session) await sessions.release(session, connection)
      const isVoid = connection.farewell || connection.cutReason === 'revoked'
      if (link.willKey && isVoid) await store.commit([{ del: link.willKey }])
    } catch (error) {
      metrics.storeFailures.inc()
      log.error({ err: error, clientId: session?.clientId }, 'end of connection not stored')
    }
    if (session) log.info({ clientId: session.clientId, reason: connection.cutReason }, 'client disconnected')
  }

  function authorizeSubscribe(client: Client, { topic, qos }: Subscription): boolean {
    const { session, connection } = linkOf(client)
    if (!session) return false
    const decision = access.maySubscribe(session.principal, topic)
    if (decision.allowed) {
      sessions.subscribe(session, topic, qos as Qos)
      return true
    }
    sessions.unsubscribe(session, topic)
    metrics.subscriptionsDenied.inc()
    const { username } = session.principal
    const { reason } = decision
    log.warn({ clientId: session.clientId, username, filter: topic, reason }, 'subscription denied')
    // Restored filters that are no longer permitted must not come back at the next connect.
    if (!connection.isOpen) void track(storeSubscriptions(session.clientId).catch(() => undefined))
    return false
  }

  async function storeSubscriptions(clientId: string): Promise<void> {
    const session = sessions.get(clientId)
    if (session) await sessions.storeSubscriptions(session)
  }

  /**
   * Decides a PUBLISH before Aedes acknowledges it. Rejecting closes the connection without an
   * acknowledgement. Acknowledgements keep the order of the publishes [MQTT-4.6.0-2].
   */
  async function takePublish(client: Client | null, packet: PublishPacket): Promise<void> {
    // Wills of other nodes' clients are none of Aedes' business here.
    if (!client) return
    const link = linkOf(client)
    const before = link.acknowledged
    const taken = receivePublish(link, packet)
    link.acknowledged = Promise.allSettled([before, taken])
    await before
    await taken
  }

  async function receivePublish(link: Link, packet: PublishPacket): Promise<void> {
    const { connection, session } = link
    if (!session) throw new Error('no session')
    // Aedes hands the will of the CONNECT over as it was read: it has no packet type.
    if (packet.cmd === undefined) return receiveWill(link, session)
    const publish = connection.nextPublish()
    if (!publish) throw new Error('a PUBLISH that did not come in')
    const { packetId } = publish
    if (publish.qos !== 2) return receiveOnce(link, session, publish, [])
    if (session.incoming.has(packetId)) return
    const underway = link.processing.get(packetId)
    if (underway) return underway
    if (session.incoming.size + link.processing.size >= incomingWindow) {
      connection.cut('protocol', `${incomingWindow} QoS 2 messages not released`)
      throw new Error('too many QoS 2 messages not released')
    }
    // A clean session does not outlive its connection: there is nothing to store.
    const alongside = session.clean ? [] : [{ put: incomingKey(session.clientId, packetId), value: '' }]
    const processing = receiveOnce(link, session, publish, alongside)
    link.processing.set(packetId, processing)
    try {
      await processing
      session.incoming.add(packetId)
    } finally {
      link.processing.delete(packetId)
    }
  }

  async function receiveWill({ connection, willKey }: Link, session: Session): Promise<void> {
    const will = connection.request?.will
    if (!will || connection.cutReason === 'revoked') return
    const { principal, clientId } = session
    const now = { at: clock(), started: performance.now() }
    const alongside = willKey ? [{ del: willKey }] : []
    // One that could not be stored stays in the store, for the next start.
    await receive({ ...will, principal, clientId, isWill: true, ...now, alongside })
  }

  async function receiveOnce(
    link: Link,
    session: Session,
    { topic, payload, qos, retain, started }: ArrivedPublish,
    alongside: readonly Change[],
  ): Promise<void> {
    const { principal, clientId } = session
    const from = { principal, clientId, isWill: false, at: clock(), started, alongside }
    if (await receive({ topic, payload, qos, retain, ...from })) return
    link.connection.cut('error', 'publish not stored')
    throw new Error('publish not stored')
  }

  /** PUBCOMP frees the identifier for a new message, so the release is stored first [MQTT-4.3.3-2]. */
  async function releaseIncoming(clientId: string, packetId: number): Promise<void> {
    const session = sessions.get(clientId)
    if (!session) return
    try {
      if (!session.clean) await store.commit([{ del: incomingKey(clientId, packetId) }])
      session.incoming.delete(packetId)
    } catch (error) {
      metrics.storeFailures.inc()
      log.error({ err: error, clientId }, 'release of a QoS 2 message not stored')
      session.owner?.cut('error', 'release not stored')
      await new Promise(() => {})
    }
  }

  function cutFor(client: Client, error: Error): void {
    linkOf(client).connection.cut('error', error.message)
  }

  function logCut(connection: MqttConnection, reason: CutReason, detail: string): void {
    metrics.connectionsCut.inc({ reason })
    const { remoteAddress, request } = connection
    const level = reason === 'takeover' || reason === 'operator' ? 'info' : 'warn'
    log[level]({ clientId: request?.clientId, remoteAddress, reason, detail }, 'connection closed')
  }

  function linkOf(client: Client): Link {
    const link = links.get(client.conn as MqttConnection)
    return link ?? { ...noLink, connection: client.conn as MqttConnection }
  }

  function track<T>(work: Promise<T>): Promise<T> {
    const settledWork = work.then(
      () => {},
      () => {},
    )
    working.add(settledWork)
    void settledWork.then(() => working.delete(settledWork))
    return work
  }

  async function settled(): Promise<void> {
    while (working.size > 0) await Promise.all(working)
  }
}

/** What the broker knows of one connection. */
interface Link {
  connection: MqttConnection
  client: Client | undefined
  session: Session | undefined
  /** Ends the client's turn to log in; harmless when called again. */
  logInDone: () => void
  /** Where its will is stored. */
  willKey: string | undefined
  /** Settles when everything published so far may be acknowledged. */
  acknowledged: Promise<unknown>
  /** QoS 2 messages on their way into the store. */
  processing: Map<number, Promise<void>>
}

/** One row of `hubctl clients list`. */
export interface ClientView {
  clientId: string
  username: string
  address: string
  connectedAt: string
  clean: boolean
  keepAlive: number
  subscriptions: string[]
  inFlight: number
  pendingBytes: number
}

function toView(session: Session, connection: MqttConnection): ClientView {
  return {
    clientId: session.clientId,
    username: session.principal.username,
    address: connection.remoteAddress,
    connectedAt: new Date(connection.connectedAt).toISOString(),
    clean: session.clean,
    keepAlive: connection.request?.keepAlive ?? 0,
    subscriptions: [...session.subscriptions.keys()],
    inFlight: session.inFlight.size,
    pendingBytes: connection.pendingBytes,
  }
}

/** One row of `hubctl sessions list`. */
export interface SessionView {
  clientId: string
  username: string
  persistent: boolean
  connected: boolean
  createdAt: string
  disconnectedAt: string | null
  subscriptions: string[]
  queued: number
  inFlight: number
  dropped: number
  oldestQueuedAt: string | null
}

function toSessionView(session: Session): SessionView {
  const { disconnectedAt } = session
  const [oldest] = session.queue.keys()
  return {
    clientId: session.clientId,
    username: session.principal.username,
    persistent: !session.clean,
    connected: session.connection !== undefined,
    createdAt: new Date(session.createdAt).toISOString(),
    disconnectedAt: disconnectedAt === undefined ? null : new Date(disconnectedAt).toISOString(),
    subscriptions: [...session.subscriptions.keys()],
    queued: session.queue.size,
    inFlight: session.inFlight.size,
    dropped: session.dropped,
    oldestQueuedAt: oldest === undefined ? null : new Date(sequenceTime(oldest)).toISOString(),
  }
}

/** One row of `hubctl retained list`. */
export interface RetainedView {
  topic: string
  eventTime: string
  expires: string | null
  bytes: number
  payload: string
}

function toRetainedView({ topic, time, expires, payload }: RetainedValue): RetainedView {
  return {
    topic,
    eventTime: new Date(time).toISOString(),
    expires: expires === undefined ? null : new Date(expires).toISOString(),
    bytes: payload.length,
    payload: payload.toString(),
  }
}

const noLink = {
  client: undefined,
  session: undefined,
  logInDone: () => {},
  willKey: undefined,
  acknowledged: Promise.resolve(),
  processing: new Map(),
}

function refusal(returnCode: number): AuthenticateError {
  return Object.assign(new Error('log-in refused'), { returnCode })
}

/** Turns per key: `take` resolves when the turns taken before are over, with the function that ends it. */
function createTurns() {
  const last = new Map<string, Promise<void>>()
  return {
    async take(key: string): Promise<() => void> {
      const before = last.get(key)
      let end = () => {}
      const turn = new Promise<void>((resolve) => {
        end = resolve
      })
      last.set(key, turn)
      void turn.then(() => {
        if (last.get(key) === turn) last.delete(key)
      })
      await before
      return end
    },
  }
}
