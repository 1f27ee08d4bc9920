import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { playing, serviceOf } from '../../test/events.ts'
import { openLightClient, paced } from '../load/light-client.ts'
import { publishPacket } from '../load/packets.ts'
import { subscribeWebhook } from '../user.ts'
import { type Attack, createAssault, type Target } from './attack.ts'

/** Delay of each acknowledgement. A delivery would fail after 20 s. */
const acknowledgeAfterMs = 15_000
/**
 * These webhooks use all delivery slots of one institution. It has 256 slots on a node, and at most 16 for one
 * endpoint. An institution has at most 50 webhooks of one livestream, so several livestreams are needed.
 */
const endpoints = 18
const webhooksEach = 16
const livestreamCount = 6
const publishEveryMs = 1_000

/** Subscribes hundreds of slow webhooks. Returns an attack that publishes events to these webhooks. */
export async function prepareSlowWebhooks(target: Target): Promise<Attack> {
  const livestreams = target.livestreams.slice(0, livestreamCount)
  const [livestream] = livestreams
  if (!livestream) throw new Error('no livestream')
  const servers = await Promise.all(Array.from({ length: endpoints }, () => startSlowServer(target.server)))
  let acknowledged = () => {}
  const publisher = await openLightClient({
    address: { port: target.mqttPort, ca: target.ca },
    login: target.publisher,
    clientId: 'slow-webhooks',
    clean: true,
    onPacket(bytes, start) {
      if (bytes[start] === 0x40) acknowledged()
    },
  })
  let packetId = 0
  const publish = () => {
    const event = Buffer.from(JSON.stringify(playing(livestream, { services: livestreams.map(serviceOf) })))
    publisher.socket.write(publishPacket(`inbox/${livestream.institution.id}`, ++packetId, event))
    return event.length
  }
  // This event creates the topics. Only then can webhooks subscribe to them.
  await new Promise<void>((resolve) => {
    acknowledged = resolve
    publish()
  })
  await paced(endpoints * webhooksEach, 16, (index) => {
    const url = `https://localhost:${servers[index % endpoints]?.port}/${index}`
    const { id: topic } = livestreams[index % livestreams.length] ?? livestream
    return subscribeWebhook(target, target.token, { url, topic })
  })

  return async (_target, force) => {
    const { seen, isOver, pause } = createAssault(force)
    while (!isOver()) {
      seen.bytes += publish()
      await pause(publishEveryMs)
    }
    seen.units = servers.reduce((sum, { received }) => sum + received(), 0)
    publisher.socket.destroy()
    for (const { close } of servers) close()
    return seen
  }
}

/** Starts a server that acknowledges every request, but only after `acknowledgeAfterMs`. */
async function startSlowServer(files: { cert: string; key: string }) {
  let received = 0
  const server = createServer({ cert: readFileSync(files.cert), key: readFileSync(files.key) })
  server.on('request', async (request, response) => {
    received++
    request.resume()
    await delay(acknowledgeAfterMs, undefined, { ref: false })
    response.writeHead(204).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    received: () => received,
    close(): void {
      server.closeAllConnections()
      server.close()
    },
  }
}
