import type { Duplex } from 'node:stream'
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
import { openAedes } from './aedes.ts'
import { createClients } from './connection/client.ts'
import { MqttConnection } from './connection/connection.ts'
import type { ConnectionLimits, CutReason } from './connection/connection-events.ts'
import type { FanOut } from './fanout/fanout.ts'
import { createRetainedSending } from './fanout/retained.ts'
import { createFilterRules } from './filter-rules.ts'
import type { Access } from './login/access.ts'
import { createLogIn } from './login/log-in.ts'
import { createWills } from './login/wills.ts'
import { createOperating } from './operating.ts'
import { createPublishing, type Inbox } from './publish.ts'
import { openHubTime } from './session/hub-time.ts'
import { openKnownSessions } from './session/known-sessions.ts'
import { openProgress } from './session/progress.ts'
import { createReturning } from './session/returning.ts'
import { attach } from './session/session.ts'
import { createSessions } from './session/sessions.ts'
import { createSubscribing } from './session/subscribing.ts'
import { createSweeping } from './sweeping.ts'

export type Broker = Awaited<ReturnType<typeof createBroker>>

export interface BrokerLimits extends ConnectionLimits {
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
/** A SUBSCRIBE or UNSUBSCRIBE of more filters may cost as much as a large PUBLISH: one filter costs some microseconds. */
const manyFilters = 10
/** Small packets cost some hundred microseconds: of all connections, so many are taken in a turn. Of large ones, one. */
const smallPerTurn = 64
/** Aedes' heartbeat tells other brokers of a cluster that it lives; nobody listens to it here. */
const heartbeatIntervalMs = 24 * 3600 * 1000

/**
 * The MQTT 3.1.1 broker. Aedes runs the log-in, the acknowledgements of inbound QoS 2, PINGREQ and the moment of a
 * will; the rooms beside this file do everything else. This file alone answers Aedes' callbacks.
 */
export async function createBroker<Decision extends { livestreams: number }>(parts: {
  store: Store
  nodes: Nodes
  calls: Calls
  access: Access
  /** How messages reach those who are connected. */
  fanout: FanOut
  /** Where it goes what clients publish. */
  inbox: Inbox<Decision>
  limits: BrokerLimits
  clock: () => number
  /** A clock that only runs on, milliseconds; that of the process unless told otherwise. */
  monotonic?: () => number
  log: Log
  metrics: Metrics
}) {
  const { store, nodes, calls, access, fanout, limits, clock, log, metrics } = parts
  const { journal, returnable, retained, trimming, history, routes, outgoing, reading, bounds } = fanout
  const { mayReceive } = access
  const sequences = createSequences(clock, nodes.slot)
  const { sessionExpiryMs: expiryMs } = limits
  const hubTime = await openHubTime({ store, log, clock, monotonic: parts.monotonic ?? monotonicNow })
  const { maxSubscriptions, maxTopicLevels } = limits
  const rules = createFilterRules({ access, maxSubscriptions, maxTopicLevels, log, metrics })
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
  const retainedSending = createRetainedSending({ journal, retained, mayReceive, live: fanout, log, metrics })
  const subscribing = createSubscribing({ sessions, reading, retainedSending, rules, log, metrics })
  const clients = createClients()
  const rate = createPublishRate(limits.publishRate, store)
  const tinyRate = Math.max(tinyPieces.perSecond, tinyPieces.perEvent * limits.publishRate)
  // Without a publish rate there is no rate of pieces either.
  const pieceRate = createPublishRate(limits.publishRate === 0 ? 0 : tinyRate)
  const turns = { small: createTurns(smallPerTurn), large: createTurns(1) }
  const running = createRunningWork()
  const publishing = createPublishing({
    ...{ store, inbox: parts.inbox, turns, rate, running, clock, log, metrics },
    incomingWindow: limits.incomingWindow,
  })
  const wills = await createWills({
    ...{ store, nodes, accept: publishing.accept, rate, isValid: access.isValid, running, clock, log },
  })
  const logIn = createLogIn({
    ...{ store, sessions, known, wills, clients, calls, log, metrics },
    authenticate: (username, password) =>
      username === undefined ? access.anonymous : access.authenticate(username, password),
    mayPublish: access.mayPublish,
    loginFailures: limits.loginFailures,
  })
  const beforeLogIn = createHalfReceived(unfinishedBefore.bytes, unfinishedBefore.pieces)
  const afterwards = createHalfReceived(unfinishedAfter.bytes, unfinishedAfter.pieces)

  const aedes = await openAedes({
    ...{ clients, heartbeatIntervalMs, connectTimeoutMs: limits.connectTimeoutMs },
    decisions: {
      async logIn(client, clientId, login) {
        try {
          return await logIn.admit(client, clientId, login)
        } catch (err) {
          metrics.storeFailures.inc()
          log.error({ err, clientId }, 'log-in not stored')
          throw err
        }
      },
      ready({ connection, session, logInDone }) {
        logInDone()
        if (session?.owner !== connection) return
        attach(session, connection)
        connection.open(session.inFlight)
        if (!session.clean) reading.begin(session)
      },
      isAccepted: (client) => client.taken.shift() ?? Promise.resolve(false),
      publishWill(client) {
        const published = wills.publish(client)
        running.add(published)
        return published
      },
      isIncoming: async (clientId, packetId) => {
        const session = sessions.get(clientId)
        return session !== undefined && publishing.isIncoming(session, packetId)
      },
      release: async (clientId, packetId) => {
        const session = sessions.get(clientId)
        if (session) await publishing.release(session, packetId)
      },
      failed: ({ connection }, error) => connection.cut('error', error.message),
    },
  })
  nodes.onGone(() => running.add(wills.publishLeftOver()))
  nodes.onChange(() => settled(sessions.endGone()))
  nodes.onReturn(() => settled(sessions.claimAgain()))

  const sweeping = createSweeping({ nodes, hubTime, retained, trimming, sessions, log, metrics })

  return {
    ...createOperating({ store, sessions, known, returning, retained, clients, nodes, calls }),
    journal,
    history,
    retained,
    trimming,
    sessions,
    known,
    hubTime,
    /**
     * Ends sessions of nodes that are gone, publishes their wills and begins to sweep. Call it before the first connection,
     * and after webhooks and plugin targets have named the messages that the journal must keep.
     */
    async start(): Promise<void> {
      await sessions.endGone()
      await wills.start()
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
          if (client.session?.owner === connection) reading.acknowledge(client.session, type, packetId)
        },
        publish: (publish) => publishing.take(client, publish),
        subscribe: async (request) => {
          if (client.session) await subscribing.subscribe(client.session, request)
        },
        unsubscribe: async (request) => {
          if (client.session) await subscribing.unsubscribe(client.session, request)
        },
        cut: (reason, detail) => logCut(connection, reason, detail),
        dropped: () => {
          metrics.messagesDropped.inc({ reason: 'slow' })
          retainedSending.dropped(connection)
        },
        hold: afterwards.hold,
        publishes: () => connection.principal !== undefined && access.publishes(connection.principal),
        publishing: (bytes, resume) =>
          publishing.enter(connection.principal?.username ?? '', bytes, resume, isOver),
        requesting(filters, resume) {
          const asker = connection.principal?.username ?? ''
          const turn = filters <= manyFilters ? turns.small : turns.large
          return turn.enter(() => void resume('turn'), { asker, isOver })
        },
      })
      const client = clients.add(connection)
      metrics.connections.inc()
      aedes.handle(client)
      connection.once('close', () => running.add(logIn.closed(client)))
    },

    connectionCount: () => clients.open.size,

    /** Closes every connection that logged in with this username. */
    disconnectUser(username: string): void {
      for (const { connection } of clients.open) {
        if (connection.principal?.username === username) connection.cut('revoked', 'credential revoked')
      }
    },

    /** Finishes what was received, closes all connections, stores what is left. */
    async close(): Promise<void> {
      sweeping.stop()
      wills.close()
      await trimming.close()
      for (const { connection } of clients.open) connection.stopReading()
      await running.ended()
      await fanout.sent()
      await aedes.close()
      for (const { connection } of clients.open) connection.destroy()
      await running.ended()
      if (nodes.isLeader()) {
        await hubTime.save().catch((err: unknown) => log.warn({ err }, 'running time not stored'))
      }
      await sessions.close()
    },
  }

  function settled(work: Promise<unknown>): void {
    work.catch((err: unknown) => log.error({ err }, 'sessions not stored'))
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
