import { Readable } from 'node:stream'

/**
 * The parts Aedes asks for that this broker does itself (docs/decisions.md): messages are matched, stored
 * and delivered by distribution, so that Aedes' emitter has nobody to tell and its persistence little to keep.
 */
export function createInertEmitter() {
  // At once, so that SUBACK leaves before the first message of the new subscription.
  const done = (_topic: unknown, _listener: unknown, callback?: () => void) => callback?.()
  return {
    on: done,
    removeListener: done,
    emit: (_packet: unknown, callback: () => void) => setImmediate(callback),
    close: (callback: () => void) => setImmediate(callback),
  }
}

/** What this broker does where Aedes calls its persistence. */
interface PersistenceCalls {
  /** Whether a QoS 2 packet identifier was received and not released. */
  isIncoming(clientId: string, packetId: number): Promise<boolean>
  /** Releases it. Never resolves when that cannot be stored, so that no PUBCOMP is sent. */
  releaseIncoming(clientId: string, packetId: number): Promise<void>
}

interface ClientId {
  id: string
}

export function createPersistence(calls: PersistenceCalls) {
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
    subscriptionsByClient: async () => [],
    subscriptionsByTopic: async () => [],
    cleanSubscriptions: nothing,
    outgoingEnqueue: nothing,
    outgoingEnqueueCombi: nothing,
    outgoingUpdate: nothing,
    outgoingClearMessageId: nothing,
    outgoingStream: noMessages,
    // The identifier is stored in the commit of the event itself: for Aedes every packet it asks about,
    // after authorizePublish let it through, is one it has seen, to be answered and not published again.
    async incomingGetPacket(client: ClientId, packet: { messageId: number }) {
      if (!(await calls.isIncoming(client.id, packet.messageId))) throw new Error('no such packet')
      return packet
    },
    incomingStorePacket: nothing,
    incomingDelPacket: (client: ClientId, packet: { messageId: number }) =>
      calls.releaseIncoming(client.id, packet.messageId),
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
