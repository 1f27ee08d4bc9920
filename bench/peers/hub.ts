import type { Login } from '../load/packets.ts'
import { startNode } from '../node.ts'
import type { Ground } from './ground.ts'
import type { Peer } from './peer.ts'

/** This project, as `npm start` runs it, without the limits that a load from one address runs into. */
export async function startHubPeer(ground: Ground, env: Record<string, string> = {}): Promise<Peer> {
  const node = await startNode({
    ...env,
    HUB_TLS_CERT: ground.certificate.cert,
    HUB_TLS_KEY: ground.certificate.key,
    HUB_TLS_CA: ground.certificate.ca,
    HUB_FEED: ground.feedPath,
    HUB_MAX_CONNECTIONS_PER_ADDRESS: '0',
    HUB_LOGIN_FAILURES: '0',
  })
  const publishers: Peer['publishers'] = []
  for (const { id, livestreams } of ground.institutions) {
    const request = { role: 'publisher', label: 'bench', institutions: [id] }
    publishers.push({ login: await node.ask<Login>('credentials.add', request), livestreams })
  }
  const addSubscriber = () =>
    node.ask<Login>('credentials.add', { role: 'subscriber', label: 'bench', filters: ['radio/#'] })
  return {
    name: 'hub',
    address: { port: node.mqttPort, ca: ground.ca },
    subscriber: await addSubscriber(),
    publishers,
    usage: node.usage,
    pids: [node.pid],
    addCredential: addSubscriber,
    stop: node.stop,
  }
}
