import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../../test/free-port.ts'
import type { Build, NodeStart } from '../node.ts'
import type { Ground } from './ground.ts'
import { startHubPeer } from './hub.ts'
import { startServer } from './installed.ts'
import type { Peer, Redis } from './peer.ts'

/** Starts a Redis that writes to its disk before it answers, as `docs/deployment.md` requires. */
export async function startRedis(ground: Ground): Promise<Redis | undefined> {
  const port = await freePort()
  const directory = join(ground.directory, `redis-${port}`)
  await mkdir(directory)
  const settings = {
    port,
    bind: '127.0.0.1',
    dir: directory,
    save: '',
    appendonly: 'yes',
    appendfsync: 'always',
    'maxmemory-policy': 'noeviction',
  }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
  const server = await startServer('redis-server', args, port)
  if (!server) return undefined
  const { Redis: Client } = await import('ioredis')
  const client = new Client(port, '127.0.0.1')
  const info = async (section: string, name: string) =>
    new RegExp(`^${name}:(\\S+)`, 'm').exec(await client.info(section))?.[1]
  return {
    pid: server.pid,
    port,
    env: { HUB_REDIS_URL: `redis://127.0.0.1:${port}`, HUB_PUBLIC_URL: 'https://bench.example' },
    usage: server.usage,
    ask: (command, ...args) => client.call(command, ...args),
    async counters() {
      const calls = (await client.info('commandstats')).matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)
      const commands = [...calls].filter(([, name]) => name !== 'info')
      const bytes = Number(await info('stats', 'total_net_input_bytes'))
      return { commands: commands.reduce((sum, [, , count]) => sum + Number(count), 0), bytes }
    },
    async stop(): Promise<void> {
      client.disconnect()
      await server.stop()
    },
  }
}

/** Starts a hub on a Redis of its own. */
export async function startHubOnRedis(
  ground: Ground,
  env: Record<string, string> = {},
  start: NodeStart = {},
): Promise<Peer | undefined> {
  const redis = await startRedis(ground)
  if (!redis) return undefined
  const startBeside = (build?: Build) => startHubPeer(ground, { ...redis.env, ...env }, { ...start, build })
  const hub = await startBeside()
  return {
    ...hub,
    name: 'hub on Redis',
    redis,
    startBeside,
    pids: [...hub.pids, redis.pid],
    async stop() {
      await hub.stop()
      await redis.stop()
    },
  }
}
