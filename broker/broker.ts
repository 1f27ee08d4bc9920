import type { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ClientCertificate } from '../certs/client-certificate.ts'
import type { LoginLimit } from '../listener/login-limit.ts'
import { createPacing } from '../listener/pacing.ts'
import { createPublishRate } from '../listener/publish-rate.ts'
import type { Calls } from '../store/nodes/calls.ts'
import type { Nodes } from '../store/nodes/nodes.ts'
import { createSequences } from '../store/nodes/sequences.ts'
import { createRunningWork } from '../store/running-work.ts'
import type { Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { CutReason, Metrics } from '../telemetry/metrics.ts'
import { inTurns } from '../telemetry/turns.ts'
import { openAedes } from './aedes.ts'
import { ClientEvents } from './client-events.ts'
import { type Client, createClients } from './connection/client.ts'
import { MqttConnection } from './connection/connection.ts'
import type { ConnectionLimits } from './connection/connection-events.ts'
import { createUnfinished } from './connection/unfinished.ts'
import type { FanOut } from './fanout/fanout.ts'
import { createRetainedSending } from './fanout/retained.ts'
import { createFilterRules } from './filter-rules.ts'
import { openHubTime } from './hub-time.ts'
import { createImportedSessions } from './imported-sessions.ts'
import { createIncoming } from './incoming-qos2.ts'
import type { Access } from './login/access.ts'
import { createClaims } from './login/claim.ts'
import { createMqttLogIn } from './login/log-in.ts'
import { createServing } from './login/serving.ts'
import { createTakeOver } from './login/take-over.ts'
import { createWills } from './login/wills.ts'
import { createOperating } from './operating.ts'
import { createPacketTrace } from './packet-trace.ts'
import { createPublishing, type Inbox, publishesSettled } from './publish.ts'
import { createCleanSessions } from './session/clean-sessions.ts'
import { openKnownSessions } from './session/known-sessions.ts'
import { createLocalSessions } from './session/local-sessions.ts'
import { openProgress } from './session/progress.ts'
import { createReturning } from './session/returning.ts'
import { createRecords } from './session/session-record.ts'
import { createSessions } from './session/sessions.ts'
import { createStoredSessions } from './session/stored-sessions.ts'
import { createGrants, createSubscribing } from './session/subscribing.ts'
import { createSweeping } from './sweeping.ts'

export type Broker = Awaited<ReturnType<typeof createBroker>>

export interface BrokerLimits extends ConnectionLimits {
  /** Time for a CONNECT to arrive, milliseconds. */
  connectTimeoutMs: number
  /** Levels of a topic or filter. */
  maxTopicLevels: number
  /** Maximum number of a client's QoS 2 messages that await PUBREL. */
  incomingWindow: number
  /** Maximum number of events per second and credential. A burst may have twice as many. 0: no limit. */
  publishRate: number
  /** How long an offline session is kept, milliseconds. */
  sessionExpiryMs: number
  /** Persistent sessions of one credential. */
  maxSessionsPerCredential: number
}

/**
 * Maximum number of small packets per turn of the event loop, over all connections. Each takes a fraction of a
 * millisecond.
 */
const smallPerTurn = 64
/** Heartbeats of Aedes are rare, because this broker is in no Aedes cluster. */
const heartbeatIntervalMs = 24 * 3600 * 1000

/** The parts that a broker needs. */
interface BrokerParts {
  store: Store
  nodes: Nodes
  calls: Calls
  access: Access
  /** Brings messages to connected clients. */
  fanout: FanOut
  /** Takes the messages that clients publish. */
  inbox: Inbox
  limits: BrokerLimits
  loginLimit: LoginLimit
  clock: () => number
  /** A clock that is never set back, milliseconds; by default `performance.now()`. */
  monotonic?: () => number
  log: Log
  metrics: Metrics
}

/** The MQTT 3.1.1 broker, put together from its parts. */
export async function createBroker(parts: BrokerParts) {
  const { store, nodes, calls, access, fanout, inbox, limits, clock, log, metrics } = parts
  const { journal, returnable, retained, trimming, history, routes, bridges } = fanout
  const { reading, outgoing, turns, bounds, acknowledge } = fanout
  const { maxSubscriptions, maxTopicLevels, maxClientId, sessionExpiryMs: expiryMs } = limits
  const { mayReceive, publishes, isValid, isBanned } = access
  const { isLeader } = nodes
  const clients = createClients(metrics)
  const monotonic = parts.monotonic ?? (() => performance.now())
  const hubTime = await openHubTime({ ...parts, isLeader, monotonic })
  const rules = createFilterRules({ access, maxSubscriptions, maxTopicLevels, log, metrics })
  const sequences = createSequences(clock, nodes)
  const local = createLocalSessions(routes, bridges, hubTime)
  const clean = createCleanSessions({ store, nodes })
  const records = createRecords({ store, reading, nodes, sequences, hubTime, bounds, clean })
  const progress = await openProgress({
    ...parts,
    journal,
    hubTime,
    sessions: local.values,
    placeOf: records.placeOf,
    sequences,
    reading,
    outgoing,
    bounds,
  })
  const known = await openKnownSessions({ store, nodes, hubTime, expiryMs, clock, endOf: progress.endOf })
  const returning = createReturning({
    ...parts,
    journal,
    returnable,
    outgoing,
    progress,
    turns,
    mayReceive,
    rules,
    bounds,
  })
  const stored = createStoredSessions({ store, records, known, local, outgoing, clean })
  const sessions = createSessions({ isLeader, known, local, records, stored, progress, reading, clean })
  const takeOver = createTakeOver({ local, known, clients, calls, clean, nodes })
  const maxPerCredential = limits.maxSessionsPerCredential
  const claims = createClaims({ store, known, local, records, stored, returning, takeOver, maxPerCredential })
  const grants = createGrants({ routes, journal, storeSession: stored.store })
  const importedSessions = createImportedSessions({
    ...parts,
    journal,
    known,
    local,
    records,
    clean,
    claims,
    rules,
    maxClientId,
  })
  const retainedSending = createRetainedSending({ retained, mayReceive, live: fanout, log, metrics })
  const pacing = { small: createPacing(smallPerTurn), large: createPacing(1) }
  const subscribing = createSubscribing({ grants, reading, retainedSending, rules, pacing, log, metrics })
  const rate = createPublishRate(limits.publishRate, store)
  const running = createRunningWork()
  const incoming = createIncoming({ store, window: limits.incomingWindow, log, metrics })
  const publishing = createPublishing({ inbox, incoming, publishes, pacing, rate, clock })
  const { decideAndSettle: accept } = publishing
  const wills = await createWills({ ...parts, accept, rate, isValid, isBanned, running })
  let isClosing = false
  const shared = { wills, isClosing: () => isClosing, log, metrics }
  const logIn = createMqttLogIn({ ...shared, access, failures: parts.loginLimit, claims, turns })
  const { serve } = createServing({ ...shared, logIn, sessions, reading, running })
  const unfinished = createUnfinished(limits.publishRate)
  const packetTrace = createPacketTrace({ clients, nodes, calls, clock })
  const handedTo = {
    publishing,
    subscribing,
    unfinished,
    acknowledge,
    retainedSending,
    packetTrace,
    log,
    metrics,
  }
  const aedes = await openAedes({
    clients,
    heartbeatIntervalMs,
    connectTimeoutMs: limits.connectTimeoutMs,
    decisions: {
      serve,
      publishWill: wills.publish,
      isResumed: (clientId) => local.connected(clientId)?.connection?.sessionPresent ?? false,
    },
  })
  nodes.onChange(() => settled(sessions.endGone()))
  nodes.onReturn(() => {
    settled(sessions.claimAgain())
    running.add(wills.endPublished(clients.open))
  })
  const sweeping = createSweeping({ hubTime, retained, trimming, sessions, log, metrics })

  return {
    ...createOperating({ store, sessions, known, clean, returning, retained, clients, nodes, calls }),
    journal,
    history,
    retained,
    trimming,
    sessions,
    known,
    hubTime,
    importedSessions,
    tracePackets: packetTrace.begin,
    endTraces: packetTrace.endAll,
    /** Cleans up after nodes that are gone, and begins to sweep out expired messages. */
    async start(): Promise<void> {
      nodes.onGone(() => running.add(wills.publishLeftOver()))
      await sessions.endGone()
      await wills.publishLeftOver()
      progress.start(stored.store)
      sweeping.start()
      fanout.bridges.start()
    },

    /** Begins an MQTT connection on a connected stream. */
    accept(socket: Duplex, remoteAddress: string, certificate?: ClientCertificate): void {
      // A TLS handshake may end after `close` began. Aedes would leave the connection open, without an answer.
      if (isClosing) return void socket.destroy()
      const connection = new MqttConnection(
        socket,
        remoteAddress,
        limits,
        (added) => new ClientEvents(clients.add(added), handedTo),
        certificate,
      )
      aedes.handle(connection)
    },

    connectionCount: () => clients.open.size,

    /** Closes every connection that logged in with this username. */
    disconnectUser(username: string): void {
      cut(({ connection }) => connection.principal?.username === username, 'revoked', 'credential revoked')
    },

    /** Closes the connections of clients that are banned. */
    endBanned(isBanned: NonNullable<Access['isBanned']>): void {
      const isMeant = ({ connection, session }: Client) => {
        const { principal, request, remoteAddress } = connection
        // Without session, the log-in is under way.
        const clientId = session?.clientId ?? request?.clientId ?? ''
        return principal !== undefined && isBanned(principal.username, clientId, remoteAddress)
      }
      cut(isMeant, 'banned', 'an operator has banned it')
    },

    /** Closes every connection: the clients find another node. */
    sendAway(): void {
      cut(() => true, 'cut-off', 'cut off from the store')
    },

    /** Finishes the packets that were received, closes all connections, and stores the sessions and the hub time. */
    async close(): Promise<void> {
      isClosing = true
      sweeping.stop()
      fanout.bridges.stop()
      wills.close()
      await trimming.close()
      for (const { connection } of clients.open) connection.stopReading()
      await publishesSettled(clients.open)
      await running.ended()
      // PUBLISHes that had to wait may have gone on during `running.ended()`. The broker must finish these as well.
      await publishesSettled(clients.open)
      await fanout.sent()
      // Acknowledgements are sent at the end of a turn of the event loop.
      await nextTurn()
      await aedes.close()
      for (const { connection } of clients.open) connection.destroy()
      await running.ended()
      await hubTime.save().catch((err: unknown) => log.warn({ err }, 'running time not stored'))
      stored.close()
      await progress.close()
    },
  }

  /** Closes the connections that are meant. A credential may have thousands: they wait for others, and not others for them. */
  function cut(isMeant: (client: Client) => boolean, reason: CutReason, detail: string): void {
    const meant = [...clients.open].filter(isMeant)
    running.add(inTurns(meant, ({ connection }) => connection.cut(reason, detail)))
  }

  function settled(work: Promise<unknown>): void {
    work.catch((err: unknown) => log.error({ err }, 'sessions not stored'))
  }
}
