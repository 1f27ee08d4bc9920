import { lowerQos, type Publish, type PublishFlags } from '../connection/frames.ts'
import type { Qos } from '../connection/protocol.ts'
import { nextPacketId, type Session } from '../session/session.ts'
import type { Recipient } from '../session/subscriptions.ts'

/** This many subscribers are made ready before the first write: the processor then fetches their fields together. */
export const groupSize = 16
/** This many subscribers get a message before the first break. */
const withoutBreak = 128
/** Maximum number of messages in flight to a clean session. One more closes the connection. */
const maxInFlight = 10_000

/**
 * Sends a message to live subscribers. Each subscriber gets it at the granted QoS, but at most at `highest`. Returns
 * undefined, or an iterator for those behind the first break: each of its steps sends up to the next break. With `fits`,
 * a break comes before each group that does not fit into the turn. Groups and breaks save CPU time: docs/decisions, "An
 * event for many goes out in several turns".
 */
export function sendToEach(
  recipients: readonly Recipient[],
  publish: Publish,
  highest: Qos,
  { fits, toBridges }: { fits?: ((writes: number) => boolean) | undefined; toBridges?: PublishFlags } = {},
): Iterator<void> | undefined {
  const start = sendFrom(0)
  return start < recipients.length ? restFrom(start) : undefined

  /** Sends up to the next break. Returns the number of recipients before it. */
  function sendFrom(first: number, isAfterBreak = false): number {
    for (let start = first; start < recipients.length; start += groupSize) {
      const group = recipients.slice(start, start + groupSize)
      const isLate = start >= withoutBreak && group.some(([, granted]) => lowerQos(granted, highest) === 0)
      const isBehindBreak = isAfterBreak && start === first
      if ((fits ? !fits(group.length) : isLate) && !isBehindBreak) return start
      sendToGroup(group, publish, highest, toBridges)
    }
    return recipients.length
  }

  function* restFrom(start: number): Generator<void> {
    for (let at = sendFrom(start, true); at < recipients.length; at = sendFrom(at, true)) yield
  }
}

const noFlags: PublishFlags = {}

/** Sends a message to a few recipients, without a break. `toBridges`: the flags for bridges. */
function sendToGroup(group: readonly Recipient[], publish: Publish, highest: Qos, toBridges = noFlags): void {
  const flagsOf = ({ isBridge }: Session) => (isBridge ? toBridges : noFlags)
  const packetIds = group.map(([session, granted]) =>
    makeReady(session, publish, lowerQos(granted, highest), flagsOf(session)),
  )
  for (const [index, [session, granted]] of group.entries()) {
    const packetId = packetIds[index]
    if (packetId === undefined) continue
    const qos = lowerQos(granted, highest)
    session.outgoing?.write(publish.packet(qos, flagsOf(session), packetId), qos > 0)
  }
}

/** Returns a packet for one session, ready to be written. Undefined: the message cannot be sent. */
export function packetFor(
  session: Session,
  publish: Publish,
  qos: Qos,
  flags: PublishFlags,
): Buffer | undefined {
  const packetId = makeReady(session, publish, qos, flags)
  return packetId === undefined ? undefined : publish.packet(qos, flags, packetId)
}

/** Returns the packet identifier (0 at QoS 0). Undefined: the message cannot be sent. */
function makeReady(session: Session, publish: Publish, qos: Qos, flags: PublishFlags): number | undefined {
  if (!session.outgoing?.accepts(publish.packet(qos, flags).length, qos)) return undefined
  if (qos === 0) return 0
  if (session.inFlight.size >= maxInFlight) {
    session.connection?.cut('slow', `${maxInFlight} messages not acknowledged`)
    return undefined
  }
  const packetId = nextPacketId(session)
  session.inFlight.set(packetId, qos === 1 ? 'qos1' : 'qos2')
  return packetId
}
