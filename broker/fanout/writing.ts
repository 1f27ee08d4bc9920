import { setImmediate as nextTurn } from 'node:timers/promises'
import { lowerQos, type Publish, type PublishFlags, type Qos } from '../connection/wire.ts'
import { nextPacketId, type Session } from '../session/session.ts'

/** Bytes that are delivered to everybody without a break. */
const maxAtOnce = 256 * 1024
/** Above this many waiting deliveries they are sent without pauses, but for those of the buffers: publishers slow down. */
const maxWaiting = 8

/** One message for all who get it. */
export interface Portion {
  bytes: number
  /** Sends it; a break is good at each value. */
  send: () => Iterable<void>
}

/**
 * Delivers at once, as a rule. Large messages, and messages for thousands, take several turns of the event loop, so that the
 * network can work in between and no fast reader's buffer overflows. Later messages do not overtake them.
 */
export function createPortions() {
  /** The last of the deliveries that take their time, while there are any: what comes behind waits for it. */
  let last: Promise<void> | undefined
  let waiting = 0

  return {
    /** Resolves when all have been delivered, in this order and behind those of earlier calls. */
    async deliver(portions: readonly Portion[]): Promise<void> {
      const steps = stepsOf(portions)
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

    /** Resolves when the deliveries of this moment have ended; undefined: there are none. */
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

/** Yields at each break, whether it is needed. */
function* stepsOf(portions: readonly Portion[]): Generator<boolean> {
  let sent = 0
  for (const { bytes, send } of portions) {
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

/** How many are made ready before the first of them is written to. */
const groupSize = 16
/** So many have a message before the first break, whoever they are. */
const withoutBreak = 128
/** Messages in flight to a clean session: beyond that it is cut off. */
const maxInFlight = 10_000

/** Who gets a message, and at most at which QoS. */
export type Recipient = readonly [session: Session, granted: Qos]

/**
 * Sends a live message for which nothing need be stored (QoS 0, or QoS 1 and 2 to clean sessions) to everybody who is
 * connected, at the granted QoS but not above `highest`.
 *
 * In groups, first made ready and then written to: what tells whether a subscriber can take a message lies in another
 * place of the memory for each. The processor fetches that for a whole group at once; from one system call to the
 * next it would have to wait for it every time.
 *
 * Yields between groups once many have it: in the next turn the writes so far come to their end, while all that
 * belongs to them is still in the cache of the processor. Not above QoS 0, where it is also the turn of those who
 * acknowledge, and others would wait for the message meanwhile.
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

/** The identifier it is sent with, 0 at QoS 0; undefined: it cannot be sent. */
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
