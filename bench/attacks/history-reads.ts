import { playing } from '../../test/events.ts'
import { openLightClient } from '../load/light-client.ts'
import { publishPacket } from '../load/packets.ts'
import type { Attack, Target } from './attack.ts'
import { floodRequests } from './flood-requests.ts'

/** Number of events of the livestream: what the default of HUB_HISTORY keeps. */
const kept = 100
/** Size of the longest text of each event, characters. A page of 200 events then has some 150 kB. */
const titleLength = 1_000

/** Publishes a full history for one livestream. Returns an attack that reads it, the largest page again and again. */
export async function prepareHistoryReads(target: Target): Promise<Attack> {
  const [livestream] = target.livestreams
  if (!livestream) throw new Error('no livestream')
  let acknowledged = 0
  let isFull = () => {}
  const publisher = await openLightClient({
    address: { port: target.mqttPort, ca: target.ca },
    login: target.publisher,
    clientId: 'history',
    clean: true,
    onPacket(bytes, start) {
      if (bytes[start] === 0x40 && ++acknowledged === kept) isFull()
    },
  })
  await new Promise<void>((resolve) => {
    isFull = resolve
    for (let packetId = 1; packetId <= kept; packetId++) {
      const event = playing(livestream, { title: `${packetId} `.padEnd(titleLength, 'x') })
      const payload = Buffer.from(JSON.stringify(event))
      publisher.socket.write(publishPacket(`inbox/${livestream.institution.id}`, packetId, payload))
    }
  })
  publisher.socket.destroy()
  const path = `/livestreams/${livestream.id}/events?limit=200`
  return floodRequests(({ token }) => `GET ${path} HTTP/1.1\r\nauthorization: Bearer ${token}\r\n\r\n`, 4)
}
