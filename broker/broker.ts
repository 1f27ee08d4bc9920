import { randomUUID } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { Aedes, type AuthenticateError, type Client } from 'aedes'
import type { KeepingLimits } from '../journal/keeping.ts'
import { openJournalAndViews } from '../journal/open.ts'
import { createHalfReceived } from '../listener/half-received.ts'
import { createPublishRate } from '../listener/publish-rate.ts'
import { createTurns } from '../listener/turns.ts'
import type { Calls } from '../store/nodes/calls.ts'
import type { Nodes } from '../store/nodes/nodes.ts'
import { createSequences } from '../store/nodes/sequences.ts'
import { createRunningWork } from '../store/running-work.ts'
import type { Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createInertEmitter, createPersistence } from './aedes-parts.ts'
import { MqttConnection } from './connection/connection.ts'
import type { ArrivedPublish, ConnectionLimits, CutReason } from './connection/connection-events.ts'
import { createLinks, type Link } from './connection/link.ts'
import { connackCode, encodePuback } from './connection/wire.ts'
import { createDistribution } from './fanout/distribution.ts'
import { createMoments } from './fanout/moments.ts'
import { createReading } from './fanout/reading.ts'
import { createReplay } from './fanout/replay.ts'
import { createFilterRules } from './filter-rules.ts'
import type { Access } from './login/access.ts'
import { createAdmission } from './login/admission.ts'
import { createWills } from './login/wills.ts'
import { createOperating } from './operating.ts'
import { createReceiving, type Receive } from './receiving.ts'
import { openHubTime } from './session/hub-time.ts'
import { openKnownSessions } from './session/known-sessions.ts'
import { createOutgoing } from './session/outgoing-qos2.ts'
import { openProgress } from './session/progress.ts'
import { createReturning } from './session/returning.ts'
import { attach, defaultBounds, type Session } from './session/session.ts'
import { createSessions } from './session/sessions.ts'
import { createSubscribing } from './session/subscribing.ts'
import { createSubscriptions, type Routes } from './session/subscriptions.ts'
import { createSweeping } from './sweeping.ts'

export type Broker = Awaited<ReturnType<typeof createBroker>>

export interface BrokerLimits extends ConnectionLimits, KeepingLimits, Partial<typeof defaultBounds> {
  /** Time for a CONNECT to arrive, milliseconds. */
  connectTimeoutMs: number
  /** Failed log-ins per address and minute; 0: no limit. */
  loginFailures: number
  /** Levels of a topic or filter. */
  maxTopicLevels: number
  /** Received QoS 2 messages one client may leave unreleased. */
  incomingWindow: number
  /** Events per second and credential, burst twice that; 0: no limit. */
  publishRate: number
  /** How long an offline session is kept, milliseconds. */
  sessionExpiryMs: number
  /** Persistent sessions of one credential. */
  maxSessionsPerCredential: number
}

/** Bytes of packets that are unfinished or wait, of all connections, and pieces of each: before log-in and afterwards. */
const unfinishedBefore = { bytes: 16 * 1024 * 1024, pieces: 128 }
const unfinishedAfter = { bytes: 64 * 1024 * 1024, pieces: 1024 }
/** Pieces of a few bytes that a credential may send: so many for each of its events, and at least so many a second. */
const tinyPieces = { perEvent: 8, perSecond: 1024 }
/** A PUBLISH of more bytes may cost tens of milliseconds: of all connections, one is decided in a turn of the event loop. */
const largeBytes = 16 * 1024
/** So does a SUBSCRIBE or UNSUBSCRIBE of more filters: one costs some microseconds. */
const manyFilters = 10
/** Other packets cost some hundred microseconds: of all connections, so many are taken in a turn. */
const smallPerTurn = 64
/** Aedes' heartbeat tells other brokers of a cluster that it lives; nobody listens to it here. */
const heartbeatIntervalMs = 24 * 3600 * 1000

/**
 * The MQTT 3.1.1 broker. Aedes runs the log-in, the acknowledgements of inbound QoS 2, PINGREQ and the moment of a
 * will; the rooms beside this file do everything else. This file alone answers Aedes' callbacks.
 */
export async function createBroker(parts: {
  store: Store
  nodes: Nodes
  calls: Calls
  access: Access
  limits: BrokerLimits
  clock: () => number
  /** A clock that only runs on, milliseconds; that of the process unless told otherwise. */
  monotonic?: () => number
  log: Log
  metrics: Metrics
}) {
  const { store, nodes, calls, access, limits, clock, log, metrics } = parts
  const mayReceive = (session: Session, topic: string) => access.mayReceive(session.principal, topic)
  const routes: Routes = { persistent: createSubscriptions(), live: createSubscriptions() }
  const sequences = createSequences(clock, nodes.slot)
  const { sessionExpiryMs: expiryMs } = limits
  const bounds = { ...defaultBounds, ...limits }
  const hubTime = await openHubTime({ store, log, clock, monotonic: parts.monotonic ?? monotonicNow })
  const { maxSubscriptions, maxTopicLevels } = limits
  const rules = createFilterRules({ access, maxSubscriptions, maxTopicLevels, log, metrics })
  const moments = createMoments()
  const { journal, returnable, retained, trimming, history } = await openJournalAndViews({
    ...{ store, nodes, limits, clock, nextMoment: moments.next },
  })
  const outgoing = createOutgoing(store)
  const reading = createReading({
    ...{ journal, returnable, outgoing, mayReceive, bounds, clock, log, metrics },
  })
  const progress = await openProgress({ store, nodes, journal, hubTime, log, metrics })
  const known = await openKnownSessions({ store, nodes, hubTime, expiryMs, clock, endOf: progress.endOf })
  const returning = createReturning({
    ...{ store, journal, returnable, outgoing, progress, mayReceive, bounds, clock, metrics },
    rules,
  })
  const sessions = createSessions({
    ...{ store, journal, known, returning, reading, outgoing, progress, routes, nodes, sequences },
    ...{ clock, hubTime, bounds },
    maxPerCredential: limits.maxSessionsPerCredential,
  })
  const distribution = createDistribution({
    ...{ store, journal, retained, returnable, reading, routes, mayReceive, clock, metrics },
  })
  const replay = createReplay({ journal, retained, mayReceive, moments, live: distribution, log, metrics })
  const subscribing = createSubscribing({ sessions, reading, replay, rules, log, metrics })
  const wills = createWills(store, nodes)
  const links = createLinks()
  const { incomingWindow } = limits
  const publishRate = createPublishRate(limits.publishRate, store)
  const tinyRate = Math.max(tinyPieces.perSecond, tinyPieces.perEvent * limits.publishRate)
  // Without a publish rate there is no rate of pieces either.
  const pieceRate = createPublishRate(limits.publishRate === 0 ? 0 : tinyRate)
  const smallPackets = createTurns(smallPerTurn)
  const largePackets = createTurns(1)
  const running = createRunningWork()
  const receiving = await createReceiving({
    ...{ store, wills, incomingWindow, running, clock, log, metrics },
    rate: publishRate,
    isValid: access.isValid,
  })
  const admission = createAdmission({
    ...{ store, sessions, known, wills, links, calls, log, metrics },
    waitingWills: receiving.waitingWills,
    authenticate: (username, password) =>
      username === undefined ? access.anonymous : access.authenticate(username, password),
    mayPublish: access.mayPublish,
    loginFailures: limits.loginFailures,
  })
  const beforeLogIn = createHalfReceived(unfinishedBefore.bytes, unfinishedBefore.pieces)
  const afterwards = createHalfReceived(unfinishedAfter.bytes, unfinishedAfter.pieces)

  const aedes = new Aedes({
    id: randomUUID(),
    mq: createInertEmitter(),
    persistence: createPersistence({
      isIncoming: async (clientId, packetId) => {
        const session = sessions.get(clientId)
        return session !== undefined && receiving.isIncoming(session, packetId)
      },
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
        (returnCode) =>
          returnCode === connackCode.accepted ? done(null, true) : done(refusal(returnCode), false),
        (error: unknown) => {
          metrics.storeFailures.inc()
          log.error({ err: error, clientId: client.id }, 'log-in not stored')
          done(refusal(connackCode.serverUnavailable), false)
        },
      )
    },
    authorizePublish: (client, packet, done) => {
      if (!client) return done(null)
      const link = links.ofClient(client)
      // A will is handed over as it stood in the CONNECT: it has no packet type.
      const isWill = packet.cmd === undefined
      const taken = isWill ? receiving.will(link) : link.taken.shift()
      if (!taken) return done(new Error('a PUBLISH that did not arrive'))
      if (isWill) running.add(taken)
      taken.then(() => done(null), done)
    },
    authorizeForward: () => null,
  })
  await aedes.listen()
  nodes.onGone(() => running.add(receiving.publishLeftOver()))
  nodes.onChange(() => settled(sessions.endGone()))
  nodes.onReturn(() => settled(sessions.claimAgain()))
  aedes.on('clientReady', (client) => {
    const { connection, session, logInDone } = links.ofClient(client)
    logInDone()
    if (session?.owner !== connection) return
    attach(session, connection)
    connection.open(session.inFlight)
    if (!session.clean) reading.begin(session)
  })
  aedes.on('connectionError', (client, error) => cutFor(client, error))
  aedes.on('clientError', (client, error) => cutFor(client, error))

  const sweeping = createSweeping({ nodes, hubTime, retained, trimming, sessions, log, metrics })

  return {
    ...createOperating({ store, sessions, known, returning, retained, links, nodes, calls }),
    distribute: distribution.distribute,
    announce: distribution.announce,
    journal,
    history,
    retained,
    trimming,
    sessions,
    known,
    hubTime,
    /**
     * Sets what happens with publishes, and begins to remove what is over; call it before the first connection, and when
     * the journal knows what is named.
     */
    async start(receive: Receive): Promise<void> {
      await sessions.endGone()
      await receiving.start(receive)
      sweeping.start()
    },

    /** Takes over a connected stream. */
    accept(socket: Duplex, remoteAddress: string): void {
      const isOver = () => !connection.isOpen
      const connection = new MqttConnection(socket, remoteAddress, limits, {
        collect(isBeforeLogIn, end) {
          if (isBeforeLogIn) return beforeLogIn.collect(end)
          const username = connection.principal?.username ?? ''
          return afterwards.collect(end, () => pieceRate.take(username, performance.now()) === 0)
        },
        acknowledged: (type, packetId) => {
          if (link.session?.owner === connection) reading.acknowledge(link.session, type, packetId)
        },
        publish: (publish) => take(link, publish),
        subscribe: async (request) => {
          if (link.session) await subscribing.subscribe(link.session, request)
        },
        unsubscribe: async (request) => {
          if (link.session) await subscribing.unsubscribe(link.session, request)
        },
        cut: (reason, detail) => logCut(connection, reason, detail),
        dropped: () => {
          metrics.messagesDropped.inc({ reason: 'slow' })
          replay.dropped(connection)
        },
        hold: afterwards.hold,
        publishes: () => connection.principal !== undefined && access.publishes(connection.principal),
        publishing(bytes, resume) {
          const username = connection.principal?.username ?? ''
          const turns = bytes <= largeBytes ? smallPackets : largePackets
          // In its turn, so that what the event before it cost has been charged by then.
          const pay = () => publishRate.enter(username, () => resume('rate'))
          return turns.enter(() => pay() && resume('turn'), { asker: username, isOver }) && pay()
        },
        requesting(filters, resume) {
          const asker = connection.principal?.username ?? ''
          const turns = filters <= manyFilters ? smallPackets : largePackets
          return turns.enter(() => void resume('turn'), { asker, isOver })
        },
      })
      const link = links.add(connection)
      metrics.connections.inc()
      link.client = aedes.handle(connection)
      connection.once('close', () => running.add(admission.closed(link)))
    },

    connectionCount: () => links.open.size,

    /** Closes every connection that logged in with this username. */
    disconnectUser(username: string): void {
      for (const { connection } of links.open) {
        if (connection.principal?.username === username) connection.cut('revoked', 'credential revoked')
      }
    },

    /** Finishes what was received, closes all connections, stores what is left. */
    async close(): Promise<void> {
      sweeping.stop()
      receiving.close()
      await trimming.close()
      for (const { connection } of links.open) connection.stopReading()
      await running.ended()
      await distribution.sent()
      await new Promise<void>((resolve) => aedes.close(() => resolve()))
      for (const { connection } of links.open) connection.destroy()
      await running.ended()
      if (nodes.isLeader()) {
        await hubTime.save().catch((err: unknown) => log.warn({ err }, 'running time not stored'))
      }
      await sessions.close()
    },
  }

  /** Decides at once, in the order of arrival. At QoS 0 and 1 Aedes has nothing to add to the answer. */
  function take(link: Link, publish: ArrivedPublish): void {
    const { connection } = link
    const taken = receiving.publish(link, publish)
    running.add(taken)
    if (publish.qos === 2) {
      link.taken.push(taken)
      return
    }
    taken.then(
      () => {
        if (publish.qos === 1) connection.send(encodePuback(publish.packetId))
      },
      (error: unknown) => connection.cut('error', error instanceof Error ? error.message : String(error)),
    )
  }

  function settled(work: Promise<unknown>): void {
    work.catch((err: unknown) => log.error({ err }, 'sessions not stored'))
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

function monotonicNow(): number {
  return performance.now()
}

function refusal(returnCode: number): AuthenticateError {
  return Object.assign(new Error('log-in refused'), { returnCode })
}
