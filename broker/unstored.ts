import { maxInFlight, nextPacketId, type Session } from './session.ts'
import { lowerQos, type Publish, type Qos } from './wire.ts'

const live = {}
const fromRetained = { retain: true }

/** How many are made ready before the first of them is written to. */
const groupSize = 16
/** Instead of a packet identifier: it is not sent. */
const refused = -1

/**
 * Sends a live message for which nothing need be stored (QoS 0, or QoS 1 and 2 to clean sessions) to everybody who is
 * connected and meant, at the granted QoS but not above `highest`. How many that are.
 *
 * In groups, first made ready and then written to: what tells whether a subscriber can take a message lies in another
 * place of the memory for each. The processor fetches that for a whole group at once; from one system call to the
 * next it would have to wait for it every time.
 */
export function sendToEach(
  recipients: Iterable<readonly [Session, Qos]>,
  publish: Publish,
  highest: Qos,
  isMeant: (session: Session) => boolean,
): number {
  const group: Session[] = []
  const granted: Qos[] = []
  let size = 0
  let meant = 0
  for (const [session, qos] of recipients) {
    if (!session.connection || !isMeant(session)) continue
    group[size] = session
    granted[size] = lowerQos(qos, highest)
    meant++
    if (++size < groupSize) continue
    sendToGroup(group, granted, size, publish)
    size = 0
  }
  sendToGroup(group, granted, size, publish)
  return meant
}

/** Sends one of the retained messages for which nothing need be stored. */
export function sendRetained(session: Session, publish: Publish, qos: Qos): void {
  const packetId = makeReady(session, publish, qos)
  if (packetId !== refused) session.connection?.put(publish, qos, fromRetained, packetId)
}

function sendToGroup(group: readonly Session[], granted: readonly Qos[], size: number, publish: Publish) {
  const packetIds: number[] = []
  for (let index = 0; index < size; index++)
    packetIds[index] = makeReady(group[index], publish, granted[index])
  for (let index = 0; index < size; index++) {
    const packetId = packetIds[index]
    if (packetId !== refused) group[index]?.connection?.put(publish, granted[index] ?? 0, live, packetId)
  }
}

/** The identifier it is sent with, 0 at QoS 0. */
function makeReady(session: Session | undefined, publish: Publish, qos: Qos = 0): number {
  if (!session?.connection?.admits(publish.length(qos), qos)) return refused
  if (qos === 0) return 0
  if (session.inFlight.size >= maxInFlight) {
    session.connection.cut('slow', `${maxInFlight} messages not acknowledged`)
    return refused
  }
  const packetId = nextPacketId(session)
  session.inFlight.set(packetId, qos === 1 ? 'qos1' : 'qos2')
  return packetId
}
