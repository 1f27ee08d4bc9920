import { startChild } from '../child.ts'
import type { commands as aedesOnRedis } from './aedes-redis-process.ts'
import type { commands as bareSockets } from './bare-sockets-process.ts'
import type { Ground } from './ground.ts'
import { anyPublishers, type Peer } from './peer.ts'
import type { commands as plainAedes } from './plain-aedes-process.ts'
import { startRedis } from './redis.ts'

/** Starts Aedes in memory, with nothing of this project except the validation. */
export async function startPlainAedes(ground: Ground): Promise<Peer> {
  const child = await startChild<typeof plainAedes>('peers/plain-aedes-process.ts')
  const { cert, key } = ground.certificate
  const port = await child.ask('start', { cert, key, feedPath: ground.feedPath })
  return peerOf('plain Aedes', ground, port, child)
}

/** Starts Aedes with the validation, on a Redis like that of a hub. */
export async function startAedesOnRedis(ground: Ground): Promise<Peer | undefined> {
  const redis = await startRedis(ground)
  if (!redis) return undefined
  const startBeside = async () => {
    const child = await startChild<typeof aedesOnRedis>('peers/aedes-redis-process.ts')
    const { cert, key } = ground.certificate
    const of = { cert, key, feedPath: ground.feedPath, redisPort: redis.port }
    return peerOf('Aedes on Redis', ground, await child.ask('start', of), child)
  }
  const peer = await startBeside()
  return {
    ...peer,
    redis,
    startBeside,
    pids: [...peer.pids, redis.pid],
    sessions: async () => Number(await redis.ask('scard', 'clients')),
    async stop() {
      await peer.stop()
      await redis.stop()
    },
  }
}

/** Starts the bare sockets: no broker on this platform can be faster. */
export async function startBareSockets(ground: Ground): Promise<Peer> {
  const child = await startChild<typeof bareSockets>('peers/bare-sockets-process.ts')
  const { cert, key } = ground.certificate
  const [institution] = ground.institutions
  const topic = `radio/${institution?.livestreams[0]?.id}/track/playing`
  return peerOf('bare sockets', ground, await child.ask('start', { cert, key, topic }), child)
}

function peerOf(
  name: Peer['name'],
  ground: Ground,
  port: number,
  { usage, stop, pid }: Pick<Peer, 'usage' | 'stop'> & { pid: number },
): Peer {
  const address = { port, ca: ground.ca }
  return { name, address, subscriber: undefined, publishers: anyPublishers(ground), usage, stop, pids: [pid] }
}
