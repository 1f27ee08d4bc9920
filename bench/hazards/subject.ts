import { join } from 'node:path'
import { startChild } from '../child.ts'
import type { Address } from '../load/light-client.ts'
import type { Login } from '../load/packets.ts'
import { type BenchNode, startNode } from '../node.ts'
import type { commands as aedesOnRedis } from '../peers/aedes-redis-process.ts'
import type { Ground } from '../peers/ground.ts'
import { nodeEnv } from '../peers/hub.ts'
import type { PeerName, Redis } from '../peers/peer.ts'
import { startRedis } from '../peers/redis.ts'

/** A system that the bench can kill and start again on its stored data. */
export interface Subject {
  name: PeerName
  address: () => Address
  pid: () => number
  isRunning: () => boolean
  redis: Redis | undefined
  /** A login that may publish for an institution. Undefined if the system needs none. */
  publisher: (institution: string) => Promise<Login | undefined>
  /** Makes a login that cannot publish. It reads `filters` on a hub, the radio tree on Aedes. */
  reader: (filters?: readonly string[]) => Promise<Login>
  /**
   * Returns the topic for an event that need not be validated. Aedes takes the event at `topic`, in the radio tree. A
   * hub takes events at the inbox alone.
   */
  entry: (topic: string, institution: string) => string
  /** Ends the system as `kill -9` does, and starts it again. */
  restart: () => Promise<void>
  stop: () => Promise<void>
}

/** Limits of the hubs: waiting messages of a session, and sessions of a credential. */
export const queueLimit = 100
export const sessionLimit = 70

/** `brokerId`: a restarted broker keeps this name. `heartbeatInterval`: milliseconds; by default a minute. */
export interface AedesSettings {
  brokerId?: string
  heartbeatInterval?: number
}

/** Starts a system. Resolves with undefined if it is not installed here. */
type StartSubject = (ground: Ground, settings: AedesSettings | undefined) => Promise<Subject | undefined>

/** The systems by their names in `--peers`. */
export const subjects: Record<'aedes-redis' | 'hub' | 'redis', StartSubject> = {
  'aedes-redis': startAedes,
  hub: (ground) => startHub('hub', ground, undefined),
  async redis(ground) {
    const redis = await startRedis(ground)
    return redis && startHub('hub on Redis', ground, redis)
  },
}

let last = 0

async function startAedes(ground: Ground, settings: AedesSettings = {}): Promise<Subject | undefined> {
  const redis = await startRedis(ground)
  if (!redis) return undefined
  const { cert, key } = ground.certificate
  const start = async () => {
    const child = await startChild<typeof aedesOnRedis>('peers/aedes-redis-process.ts')
    const of = { cert, key, feedPath: ground.feedPath, redisPort: redis.port }
    return { child, port: await child.ask('start', { ...of, ...settings }) }
  }
  let { child, port } = await start()
  return {
    name: 'Aedes on Redis',
    address: () => ({ port, ca: ground.ca }),
    pid: () => child.pid,
    isRunning: () => isRunning(child.pid),
    redis,
    publisher: async () => undefined,
    reader: async () => ({ username: `reader-${++last}`, password: 'x' }),
    entry: (topic) => topic,
    async restart() {
      await kill(child.pid)
      const next = await start()
      child = next.child
      port = next.port
    },
    async stop() {
      await child.stop()
      await redis.stop()
    },
  }
}

async function startHub(name: PeerName, ground: Ground, redis: Redis | undefined): Promise<Subject> {
  const env = {
    ...nodeEnv(ground),
    ...redis?.env,
    HUB_DATA_DIR: join(ground.directory, `hub-${++last}`),
    HUB_QUEUE_LIMIT: String(queueLimit),
    HUB_MAX_SESSIONS_PER_CREDENTIAL: String(sessionLimit),
  }
  let node: BenchNode = await startNode(env)
  const add = (of: object) => node.ask<Login>('credentials.add', { label: 'hazards', ...of })
  return {
    name,
    address: () => ({ port: node.mqttPort, ca: ground.ca }),
    pid: () => node.pid,
    isRunning: () => isRunning(node.pid),
    redis,
    publisher: (institution) => add({ role: 'publisher', institutions: [institution] }),
    reader: (filters = ['radio/#']) => add({ role: 'subscriber', filters }),
    entry: (_topic, institution) => `inbox/${institution}`,
    async restart() {
      await kill(node.pid)
      await node.stop()
      node = await startNode(env)
    },
    async stop() {
      await node.stop()
      await redis?.stop()
    },
  }
}

async function kill(pid: number): Promise<void> {
  process.kill(pid, 'SIGKILL')
  while (isRunning(pid)) await new Promise((resolve) => setTimeout(resolve, 5))
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
