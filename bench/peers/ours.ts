import { join } from 'node:path'
import { startChild } from '../child.ts'
import { v8Options } from '../node.ts'
import type { commands as aedesOnRedis } from './aedes-redis-process.ts'
import type { commands as bareFastify } from './bare-fastify-process.ts'
import type { commands as bareSockets } from './bare-sockets-process.ts'
import type { commands as floor } from './floor-process.ts'
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

/** Starts bare sockets: no broker on this platform can deliver with less work. */
export async function startBareSockets(ground: Ground, maxQos: 0 | 1): Promise<Peer> {
  const child = await startChild<typeof bareSockets>('peers/bare-sockets-process.ts')
  const port = await child.ask('start', { ...lightStart(ground), maxQos })
  const peer = peerOf(maxQos === 0 ? 'bare sockets' : 'bare sockets, QoS 1', ground, port, child)
  return { ...peer, pubacks: () => child.ask('pubacks', {}) }
}

/** Starts the floor: no hub on this platform can take, check, store and deliver events with less work. */
export async function startFloor(ground: Ground, command: readonly string[] = []): Promise<Peer> {
  const child = await startChild<typeof floor>('peers/floor-process.ts', { v8Options, command })
  const directory = join(ground.directory, `floor-${child.pid}`)
  return peerOf('floor', ground, await child.ask('start', { ...lightStart(ground), directory }), child)
}

/** Starts Fastify with the check of bodies and a synced batch: no HTTPS door on it can take events with less work. */
export async function startBareFastify(ground: Ground, command: readonly string[] = []) {
  const child = await startChild<typeof bareFastify>('peers/bare-fastify-process.ts', { v8Options, command })
  const { cert, key } = ground.certificate
  const directory = join(ground.directory, `fastify-${child.pid}`)
  return { ...child, port: await child.ask('start', { cert, key, directory }) }
}

function lightStart({ certificate: { cert, key }, institutions: [institution] }: Ground) {
  return { cert, key, topic: `radio/${institution?.livestreams[0]?.id}/track/playing` }
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
