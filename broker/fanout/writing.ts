import { setImmediate as nextTurn } from 'node:timers/promises'
import { lowerQos, type Publish, type PublishFlags, type Qos } from '../connection/wire.ts'
import { nextPacketId, type Session } from '../session/session.ts'

/** Bytes that go to each subscriber without a break. */
const maxAtOnce = 256 * 1024
/** Above this many waiting calls, deliveries pause only for full buffers, so that publishers slow down. */
const maxWaiting = 8

/** One message for all who get it. */
export interface Delivery {
  bytes: number
  /** Sends the message. At each yielded value a break is possible. */
  send: () => Iterable<void>
}

/**
 * Deliveries in their order. Most go out at once. Large messages, and messages for thousands, take several turns of the
 * event loop, so that the network can work in between and no fast reader's buffer overflows. Later messages do not
 * overtake them.
 */
export function createDeliveryQueue() {
  /** The last call whose deliveries take several turns: a later call waits for it. Undefined: there is none. */
  let last: Promise<void> | undefined
  let waiting = 0

  return {
    /** Resolves when all have been delivered, in this order and after those of earlier calls. */
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

/** Yields at each break. True: the break is needed. */
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

/** So many subscribers are made ready before the hub writes to the first of them. */
const groupSize = 16
/** So many subscribers get a message before the first break. */
const withoutBreak = 128
/** Most messages in flight to a clean session. One more cuts it off. */
const maxInFlight = 10_000

/** A session that gets a message, and the highest QoS at which it may get it. */
export type Recipient = readonly [session: Session, granted: Qos]

/**
 * Sends a live message for which nothing need be stored (QoS 0, or QoS 1 and 2 to clean sessions) to its recipients, at
 * the granted QoS but not above `highest`.
 *
 * In groups: all subscribers of a group are made ready, then all are written to. The fields that show whether a
 * subscriber can take a message lie elsewhere in memory for each one. The processor fetches the fields of a whole group
 * at once; between system calls it would have to wait for them every time.
 *
 * Pauses between groups once many have the message. The next turn ends the writes while their data are in the cache of
 * the processor. Does not pause before a group at QoS 1 and 2 only: that turn would also take acknowledgements, and
 * the other subscribers would wait.
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

/** Sends one of the retained messages for which nothing need be stored. */
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

/** Prepares a write. Returns the packet identifier, 0 at QoS 0; undefined: the message cannot be sent. */
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
