import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { Aedes, type Client as AedesClient, type AuthenticateError } from 'aedes'
import type { Client, Clients } from './connection/client.ts'
import type { MqttConnection } from './connection/connection.ts'
import { connackCode } from './connection/wire.ts'

/** The decisions that Aedes asks this broker for. */
interface Decisions {
  /** A CONNECT: the return code of its CONNACK. Rejects where the log-in could not be stored. */
  logIn(
    client: Client,
    clientId: string,
    login: { username: string | undefined; password: Buffer | undefined },
  ): Promise<number>
  /** The CONNACK is out. */
  ready(client: Client): void
  /** A PUBLISH. True: it may be acknowledged. Asked in the order of arrival. */
  authorizePublish(client: Client): Promise<boolean>
  /** The connection ended without DISCONNECT. */
  publishWill(client: Client): Promise<unknown>
  /** Whether a QoS 2 packet identifier was received and not released. */
  isIncoming(clientId: string, packetId: number): Promise<boolean>
  /** Releases it. If the store fails, closes the connection and rejects: Aedes would send PUBCOMP all the same. */
  release(clientId: string, packetId: number): Promise<void>
  /** Whether CONNACK says that the client found its session [MQTT-3.2.2-2]. */
  isResumed(clientId: string): boolean
}

/**
 * The only door to Aedes, which speaks the protocol: it answers CONNECT, PUBLISH and PUBREL, ends connections, and says when a will
 * is to be published. Our decisions sit in its hooks. What goes past it, and why, is in docs/decisions.md.
 */
export async function openAedes(parts: {
  clients: Clients
  /** How often keep alive is looked at, milliseconds. */
  heartbeatIntervalMs: number
  /** Time in which a client must log in, milliseconds. */
  connectTimeoutMs: number
  decisions: Decisions
}) {
  const { clients, heartbeatIntervalMs, connectTimeoutMs, decisions } = parts
  const aedes = new Aedes({
    id: randomUUID(),
    mq: createInertEmitter(),
    persistence: createPersistence(decisions),
    heartbeatInterval: heartbeatIntervalMs,
    connectTimeout: connectTimeoutMs,
    // The connection bounds what waits in either direction.
    drainTimeout: 0,
    queueLimit: Number.MAX_SAFE_INTEGER,
    authenticate: (from, username, password, done) => {
      const login = {
        username: username === undefined ? undefined : String(username),
        password: password ? Buffer.from(password) : undefined,
      }
      decisions.logIn(clients.ofAedes(from), from.id, login).then(
        (returnCode) =>
          returnCode === connackCode.accepted ? done(null, true) : done(refusal(returnCode), false),
        () => done(refusal(connackCode.serverUnavailable), false),
      )
    },
    authorizePublish: (from, packet, done) => {
      if (!from) return done(null)
      const client = clients.ofAedes(from)
      // A will is handed over as it stood in the CONNECT: it has no packet type.
      if (packet.cmd === undefined) {
        decisions.publishWill(client).then(() => done(null), done)
        return
      }
      decisions
        .authorizePublish(client)
        .then((isAccepted) => done(isAccepted ? null : new Error('not accepted')), done)
    },
    authorizeForward: () => null,
  })
  // Aedes would close the connection for a topic of more than 100 levels, because its own emitter and persistence are
  // recursive. The decision about a PUBLISH drops such a topic, and reports it (design.md §7).
  Object.assign(aedes, { maxTopicLevels: Number.POSITIVE_INFINITY })
  await aedes.listen()
  aedes.on('clientReady', (from) => decisions.ready(clients.ofAedes(from)))
  const failed = (from: AedesClient, error: Error) =>
    clients.ofAedes(from).connection.cut('error', error.message)
  aedes.on('connectionError', failed)
  aedes.on('clientError', failed)

  return {
    /** Takes over the connection of a client. */
    handle(connection: MqttConnection): void {
      clients.ofAedes({ conn: connection }).aedes = aedes.handle(connection)
    },
    close: (): Promise<void> => new Promise((resolve) => aedes.close(() => resolve())),
  }
}

function refusal(returnCode: number): AuthenticateError {
  return Object.assign(new Error('log-in refused'), { returnCode })
}

/**
 * An emitter that delivers nothing and, below, a persistence that keeps nothing: `fanout/` matches and delivers messages,
 * `journal/` and `session/` store them (docs/decisions.md).
 */
function createInertEmitter() {
  // At once, so that SUBACK leaves before the first message of the new subscription.
  const done = (_topic: unknown, _listener: unknown, callback?: () => void) => callback?.()
  return {
    on: done,
    removeListener: done,
    emit: (_packet: unknown, callback: () => void) => setImmediate(callback),
    close: (callback: () => void) => setImmediate(callback),
  }
}

interface ClientId {
  id: string
}

function createPersistence(decisions: Pick<Decisions, 'isIncoming' | 'release' | 'isResumed'>) {
  const { isIncoming, release, isResumed } = decisions
  const nothing = async () => undefined
  const noMessages = () => Readable.from([])
  return {
    async setup() {},
    storeRetained: nothing,
    createRetainedStreamCombi: noMessages,
    createRetainedStream: noMessages,
    // SUBSCRIBE and UNSUBSCRIBE never reach it.
    addSubscriptions: nothing,
    removeSubscriptions: nothing,
    // Aedes calls only a session with subscriptions present. It hands this one to the emitter, which delivers nothing.
    subscriptionsByClient: async ({ id }: ClientId) => (isResumed(id) ? [{ topic: 'session', qos: 0 }] : []),
    subscriptionsByTopic: async () => [],
    cleanSubscriptions: nothing,
    outgoingEnqueue: nothing,
    outgoingEnqueueCombi: nothing,
    outgoingUpdate: nothing,
    outgoingClearMessageId: nothing,
    outgoingStream: noMessages,
    // Aedes asks about a PUBLISH after `authorizePublish`. By then the commit of the event has stored the identifier. So
    // Aedes takes the packet for a repetition: it answers it, and does not publish it.
    async incomingGetPacket(client: ClientId, packet: { messageId: number }) {
      if (!(await isIncoming(client.id, packet.messageId))) throw new Error('no such packet')
      return packet
    },
    incomingStorePacket: nothing,
    incomingDelPacket: (client: ClientId, packet: { messageId: number }) =>
      release(client.id, packet.messageId),
    cleanIncoming: nothing,
    putWill: nothing,
    getWill: nothing,
    delWill: nothing,
    streamWill: noMessages,
    getClientList: noMessages,
    countOffline: async () => ({ subsCount: 0, clientsCount: 0 }),
    destroy: nothing,
  }
}
