import { setImmediate as nextTurn } from 'node:timers/promises'
import { lowerQos, type Publish, type PublishFlags, type Qos } from '../connection/wire.ts'
import { nextPacketId, type Session } from '../session/session.ts'

/** Maximum number of bytes that the node sends to each subscriber without a break. */
const maxAtOnce = 256 * 1024
/**
 * If more than this many calls of `deliver` are waiting, they make a break only where a buffer may overflow.
 * The other breaks only let the node do other work, such as reading from publishers. Without these breaks,
 * the node sends the waiting messages sooner.
 */
const maxWaiting = 8

/** The delivery of one message to all its recipients. */
export interface Delivery {
  bytes: number
  /** Sends the message. At each `yield` the caller may make a break: wait for the next turn of the event loop. */
  send: () => Iterable<void>
}

/**
 * Makes deliveries in the order of the calls. Most calls of `deliver` end in the same turn of the event loop. Large
 * messages, and messages for thousands of subscribers, take several turns. In between, the network can work, so the
 * buffer of a fast reader does not overflow. Later messages do not overtake earlier ones.
 */
export function createDeliveryQueue() {
  /** The last unfinished call of `deliver`. The next call waits for it. Undefined: all calls have ended. */
  let last: Promise<void> | undefined
  let waiting = 0

  return {
    /** Makes the deliveries in this order, after the deliveries of earlier calls. Resolves when all are made. */
    async deliver(deliveries: readonly Delivery[]): Promise<void> {
      const steps = stepsOf(deliveries)
      if (!last && steps.next().done) return
      const own = finish(steps, last)
      last = own
      waiting++
      try {
        await own
      } finally {
        waiting--
        if (last === own) last = undefined
      }
    },

    /** Resolves when the deliveries that are under way now have ended; undefined: there are none. */
    ended: (): Promise<void> | undefined => last,
  }

  async function finish(steps: Iterator<boolean>, before: Promise<void> | undefined): Promise<void> {
    await (before ? Promise.allSettled([before]) : nextTurn())
    for (let step = steps.next(); !step.done; step = steps.next()) {
      const isNeeded = step.value
      if (isNeeded || waiting <= maxWaiting) await nextTurn()
    }
  }
}

/** Makes the deliveries. Yields where a break is possible. True: without this break, buffers may overflow. */
function* stepsOf(deliveries: readonly Delivery[]): Generator<boolean> {
  let sent = 0
  for (const { bytes, send } of deliveries) {
    if (sent > 0 && sent + bytes > maxAtOnce) {
      yield true
      sent = 0
    }
    sent += bytes
    for (const _ of send()) yield false
  }
}

const live = {}
const fromRetained = { retain: true }

/** The hub makes this many subscribers ready before it writes to the first of them. */
const groupSize = 16
/** This many subscribers get a message before the first break. */
const withoutBreak = 128
/** Maximum number of messages in flight to a clean session. If there is one more, the hub closes the connection. */
const maxInFlight = 10_000

/** A session that gets a message, and the highest QoS that its matching filters grant. */
export type Recipient = readonly [session: Session, granted: Qos]

/**
 * Sends a live message to its recipients, at the granted QoS but not above `highest`. Live means that the hub stores
 * nothing for the recipient: at QoS 0, or for a clean session.
 *
 * Works in groups of subscribers: first makes all subscribers of a group ready, then writes to all of them. The fields
 * that show whether a subscriber can take a message lie in a different part of memory for each subscriber. In a loop
 * over the group, the processor fetches these fields all at once. If the node made a system call after each subscriber,
 * the processor would wait for the fields of each one.
 *
 * After the first `withoutBreak` subscribers, makes a break before each group. In the next turn of the event loop,
 * Node.js ends the writes of the last group while their data are still in the cache of the processor. Makes no break
 * before a group with QoS 1 and 2 only: during the break the hub would also handle acknowledgements, and the other
 * subscribers would wait longer.
 */
export function* sendToEach(
  recipients: readonly Recipient[],
  publish: Publish,
  highest: Qos,
): Generator<void> {
  for (let start = 0; start < recipients.length; start += groupSize) {
    const group = recipients.slice(start, start + groupSize)
    if (start >= withoutBreak && group.some(([, granted]) => lowerQos(granted, highest) === 0)) yield
    sendToGroup(group, publish, highest)
  }
}

/** Sends a retained message at QoS 0, or to a clean session. The hub stores nothing about such a message. */
export function sendRetained(session: Session, publish: Publish, qos: Qos): void {
  const packetId = makeReady(session, publish, qos, fromRetained)
  if (packetId !== undefined) write(session, publish, qos, fromRetained, packetId)
}

function sendToGroup(group: readonly Recipient[], publish: Publish, highest: Qos): void {
  const packetIds = group.map(([session, granted]) =>
    makeReady(session, publish, lowerQos(granted, highest), live),
  )
  for (const [index, [session, granted]] of group.entries()) {
    const packetId = packetIds[index]
    if (packetId === undefined) continue
    write(session, publish, lowerQos(granted, highest), live, packetId)
  }
}

/** Prepares a write. Returns the packet identifier (0 at QoS 0), or undefined if the message cannot be sent. */
function makeReady(session: Session, publish: Publish, qos: Qos, flags: PublishFlags): number | undefined {
  if (!session.outgoing?.hasRoom(publish.packet(qos, flags).length)) {
    session.connection?.overflow(qos)
    return undefined
  }
  if (qos === 0) return 0
  if (session.inFlight.size >= maxInFlight) {
    session.connection?.cut('slow', `${maxInFlight} messages not acknowledged`)
    return undefined
  }
  const packetId = nextPacketId(session)
  session.inFlight.set(packetId, qos === 1 ? 'qos1' : 'qos2')
  return packetId
}

function write(session: Session, publish: Publish, qos: Qos, flags: PublishFlags, packetId: number): void {
  session.outgoing?.write(publish.packet(qos, flags, packetId), qos > 0)
}
