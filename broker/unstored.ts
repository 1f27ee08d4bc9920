import { maxInFlight, nextPacketId, type Session } from './session.ts'
import { lowerQos, type Publish, type PublishFlags, type Qos } from './wire.ts'

const live = {}
const fromRetained = { retain: true }

/** How many are made ready before the first of them is written to. */
const groupSize = 16

type Recipient = readonly [session: Session, granted: Qos]

/**
 * Sends a live message for which nothing need be stored (QoS 0, or QoS 1 and 2 to clean sessions) to everybody who is
 * connected and meant, at the granted QoS but not above `highest`. How many that are.
 *
 * In groups, first made ready and then written to: what tells whether a subscriber can take a message lies in another
 * place of the memory for each. The processor fetches that for a whole group at once; from one system call to the
 * next it would have to wait for it every time.
 */
export function sendToEach(
  recipients: Iterable<Recipient>,
  publish: Publish,
  highest: Qos,
  isMeant: (session: Session) => boolean,
): number {
  let group: Recipient[] = []
  let meant = 0
  for (const recipient of recipients) {
    const [session] = recipient
    // Compared, because to see whether it is truthy V8 would have to fetch it.
    if (session.outgoing === undefined || !isMeant(session)) continue
    meant++
    if (group.push(recipient) < groupSize) continue
    sendToGroup(group, publish, highest)
    group = []
  }
  sendToGroup(group, publish, highest)
  return meant
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
