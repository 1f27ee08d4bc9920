import type { Login } from '../load/packets.ts'
import { type BenchNode, type NodeStart, startNode } from '../node.ts'
import type { Ground } from './ground.ts'
import type { Peer } from './peer.ts'

/** Variables of a node on a ground. Limits per address are off, because the bench has one address. */
export function nodeEnv({ certificate, feedPath }: Ground): Record<string, string> {
  return {
    HUB_TLS_CERT: certificate.cert,
    HUB_TLS_KEY: certificate.key,
    HUB_TLS_CA: certificate.ca,
    HUB_FEED: feedPath,
    HUB_MAX_CONNECTIONS_PER_ADDRESS: '0',
    HUB_LOGIN_FAILURES: '0',
  }
}

/** Starts this project's hub as `npm start` runs it. The hub of another commit is named `before`. */
export async function startHubPeer(
  ground: Ground,
  env: Record<string, string> = {},
  start: NodeStart = {},
): Promise<Peer & Pick<BenchNode, 'httpsPort' | 'ask'>> {
  const node = await startNode({ ...env, ...nodeEnv(ground) }, start)
  const publishers: Peer['publishers'] = []
  for (const { id, livestreams } of ground.institutions) {
    const request = { role: 'publisher', label: 'bench', institutions: [id] }
    publishers.push({ login: await node.ask<Login>('credentials.add', request), livestreams })
  }
  const reading = { role: 'subscriber', label: 'bench', filters: ['radio/#'] }
  const subscriber = await node.ask<Login>('credentials.add', reading)
  return {
    name: start.build ? 'before' : 'hub',
    httpsPort: node.httpsPort,
    ask: node.ask,
    address: { port: node.mqttPort, ca: ground.ca },
    subscriber,
    publishers,
    usage: node.usage,
    pids: [node.pid],
    async sessions() {
      const { username } = subscriber
      return (await node.ask<{ sessions: number }>('credentials.show', { username })).sessions
    },
    async exceeded() {
      const { counters } = await node.ask<{ counters: Record<string, number> }>('status')
      return counters.hub_budget_exceeded_total ?? 0
    },
    stop: node.stop,
  }
}
