import { encodePubrel } from '../connection/packets.ts'
import { packetType } from '../connection/protocol.ts'
import type { Flight, Owed } from '../session/in-flight.ts'
import type { Outgoing } from '../session/outgoing-qos2.ts'
import type { Session } from '../session/session.ts'
import type { CatchingUp } from './catching-up.ts'
import type { Sending } from './sending.ts'

/** Handles PUBACK, PUBREC and PUBCOMP of subscribers. */
export function createAcknowledging(parts: {
  outgoing: Outgoing
  sending: Sending
  catchingUp: CatchingUp
  inFlightWindow: number
}) {
  const { outgoing, sending, catchingUp, inFlightWindow } = parts
  return { acknowledge }

  function acknowledge(session: Session, type: number, packetId: number): void {
    const flight = session.inFlight.get(packetId)
    if (flight === undefined) {
      // A PUBREC for a message that this node has forgotten still gets its PUBREL [MQTT-4.3.3-1].
      if (type === packetType.pubrec) session.connection?.send(encodePubrel(packetId))
      return
    }
    if (!continues(flight, type)) {
      session.connection?.cut('protocol', `packet type ${type} does not acknowledge message ${packetId}`)
      return
    }
    if (type !== packetType.pubrec) {
      session.inFlight.delete(packetId)
      if (typeof flight === 'object' && flight.qos === 2) outgoing.remove(session, flight.position)
      // Reads on only when half of the window is free. Otherwise each acknowledgement would cause a read of one
      // message.
      const hasRoom = session.inFlight.size <= inFlightWindow / 2
      if (!session.clean && session.reading === 'paused' && hasRoom) void catchingUp.read(session)
    } else if (typeof flight === 'object') void release(session, flight, packetId)
    else {
      session.inFlight.set(packetId, 'released')
      session.connection?.send(encodePubrel(packetId))
    }
  }

  /**
   * Stores the release, then sends PUBREL. After PUBREL, the client would take a repeated PUBLISH for a new one
   * [MQTT-4.3.3-1].
   */
  async function release(session: Session, owed: Owed, packetId: number): Promise<void> {
    const { connection } = session
    if (!connection) return
    session.inFlight.set(packetId, { ...owed, released: true })
    const stored = await sending.insist(session, connection, () => outgoing.release(session, owed.position))
    if (stored) session.connection?.send(encodePubrel(packetId))
  }
}

/** Whether the client may send this acknowledgement now. Any other breaks the protocol [MQTT-4.8.0-1]. */
function continues(flight: Flight, type: number): boolean {
  const released = typeof flight === 'object' ? flight.released === true : flight === 'released'
  const qos1 = typeof flight === 'object' ? flight.qos === 1 : flight === 'qos1'
  if (qos1) return type === packetType.puback
  // A repeated PUBREC asks for the PUBREL again.
  return type === packetType.pubrec || (type === packetType.pubcomp && released)
}
