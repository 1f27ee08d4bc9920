import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { Aedes, type Client as AedesClient, type AuthenticateError } from 'aedes'
import type { Client, Clients } from './connection/client.ts'
import type { ConnectCredentials } from './connection/connect-packet.ts'
import type { MqttConnection } from './connection/connection.ts'
import { connackCode } from './connection/protocol.ts'
import type { SendConnack } from './login/serving.ts'

/** The decisions that Aedes asks this broker for. */
interface Decisions {
  /** Serves a client from its CONNECT on. */
  serve(client: Client, clientId: string, credentials: ConnectCredentials, answer: SendConnack): void
  /** Aedes calls this when a connection has ended without DISCONNECT. */
  publishWill(client: Client): Promise<unknown>
  /** Whether CONNACK says that the client found its session [MQTT-3.2.2-2]. */
  isResumed(clientId: string): boolean
}

/**
 * The only door to Aedes, which answers CONNECT, and ends what DISCONNECT ends. Its hooks ask this broker for decisions
 * (docs/decisions, "Aedes begins and ends connections, everything between is our own").
 */
export async function openAedes(parts: {
  clients: Clients
  /** How often Aedes sends a heartbeat to other brokers of its cluster, milliseconds. */
  heartbeatIntervalMs: number
  /** Time for a CONNECT to arrive, milliseconds. */
  connectTimeoutMs: number
  decisions: Decisions
}) {
  const { heartbeatIntervalMs, connectTimeoutMs, decisions } = parts
  /** The client for a client object of Aedes. */
  function clientOf({ conn }: { conn: object }): Client {
    const client = parts.clients.byConnection.get(conn)
    if (!client) throw new Error('a client without connection')
    return client
  }
  const aedes = new Aedes({
    id: randomUUID(),
    mq: createInertEmitter(),
    persistence: createPersistence(decisions.isResumed),
    heartbeatInterval: heartbeatIntervalMs,
    connectTimeout: connectTimeoutMs,
    // `MqttConnection` limits the waiting bytes, so the limits of Aedes are off.
    drainTimeout: 0,
    queueLimit: Number.MAX_SAFE_INTEGER,
    authenticate: (from, _username, _password, done) => {
      const client = clientOf(from)
      const answered = isAnswered(from, client.connection)
      decisions.serve(client, from.id, client.connection.takeCredentials(), (returnCode) => {
        if (returnCode === undefined) client.connection.destroy()
        else if (returnCode === connackCode.accepted) done(null, true)
        else done(refusal(returnCode), false)
        return answered
      })
    },
    // Of a client, Aedes publishes only the will.
    authorizePublish: (from, _will, done) => {
      if (!from) return done(null)
      decisions.publishWill(clientOf(from)).then(() => done(null), done)
    },
    authorizeForward: () => null,
  })
  // Aedes would close the connection for a will with more than 100 topic levels. The inbox drops and reports such a
  // message (design.md §7).
  Object.assign(aedes, { maxTopicLevels: Number.POSITIVE_INFINITY })
  await aedes.listen()
  const failed = (from: AedesClient, error: Error) => clientOf(from).connection.cut('error', error.message)
  aedes.on('connectionError', failed)
  aedes.on('clientError', failed)

  return {
    /** Hands the connection of a client to Aedes. */
    handle(connection: MqttConnection): void {
      aedes.handle(connection)
    },
    close: (): Promise<void> => new Promise((resolve) => aedes.close(() => resolve())),
  }
}

/** Resolves with true when a client has its CONNACK, with false when its connection is closed before. */
function isAnswered(from: AedesClient, connection: MqttConnection): Promise<boolean> {
  return new Promise((resolve) => {
    const closed = () => resolve(false)
    connection.once('close', closed)
    from.once('connected', () => {
      connection.off('close', closed)
      resolve(true)
    })
  })
}

function refusal(returnCode: number): AuthenticateError {
  return Object.assign(new Error('log-in refused'), { returnCode })
}

/**
 * This emitter delivers nothing: `fanout/` does. The persistence below stores nothing: `journal/` and `session/` do.
 */
function createInertEmitter() {
  // Calls back at once, because this emitter keeps no listener.
  const done = (_topic: unknown, _listener: unknown, callback?: () => void) => callback?.()
  return {
    on: done,
    removeListener: done,
    emit: (_packet: unknown, callback: () => void) => setImmediate(callback),
    close: (callback: () => void) => setImmediate(callback),
  }
}

/** What Aedes asks of its persistence where PUBLISH, PUBREL, SUBSCRIBE and UNSUBSCRIBE never reach it. */
function createPersistence(isResumed: Decisions['isResumed']) {
  const nothing = async () => undefined
  const noMessages = () => Readable.from([])
  return {
    async setup() {},
    // For Aedes, a session is present if it has a subscription. The inert emitter ignores this made-up subscription.
    subscriptionsByClient: async ({ id }: { id: string }) =>
      isResumed(id) ? [{ topic: 'session', qos: 0 }] : [],
    cleanSubscriptions: nothing,
    outgoingStream: noMessages,
    delWill: nothing,
    putWill: nothing,
    streamWill: noMessages,
    // Aedes publishes wills, and news of itself.
    storeRetained: nothing,
    subscriptionsByTopic: async () => [],
    outgoingEnqueueCombi: nothing,
  }
}
