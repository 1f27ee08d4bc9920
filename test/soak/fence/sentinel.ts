import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { type RedisServer, startRedis } from '../../redis-server.ts'
import { until } from '../../until.ts'
import type { Backend } from './cluster.ts'
import type { StoreFaults } from './faults.ts'
import { startNetwork, type Way } from './network.ts'

interface Server {
  redis: RedisServer
  /** The network through which the replica reaches this server. */
  toReplica: Awaited<ReturnType<typeof startNetwork>>
}

/** Starts a Redis master, a replica, and a Sentinel. A node reaches the three through networks of its own. */
export async function startSentinelBackend(t: Test): Promise<Backend & { faults: StoreFaults }> {
  const [one, other] = [await startServer(t), await startServer(t)]
  let [master, replica] = [one, other]
  await follow(replica, master)
  const sentinel = await startRedis(
    t,
    [
      `sentinel monitor hub 127.0.0.1 ${master.redis.port} 1`,
      'sentinel down-after-milliseconds hub 1000',
      // The timeout is long. After it, the Sentinel would make the replica follow the master directly. The replica
      // would then bypass the network of the test.
      'sentinel failover-timeout hub 60000',
    ],
    'sentinel',
  )
  const asking = sentinel.client()
  await until(async () => isListed(await asking.call('SENTINEL', 'REPLICAS', 'hub')))

  return {
    async reach(home) {
      const [toOne, toOther] = [
        await startNetwork(t, one.redis.port),
        await startNetwork(t, other.redis.port),
      ]
      const toSentinel = await startNetwork(t, sentinel.port, (chunk) =>
        // The Sentinel's answers must name the ports of this node's networks.
        Buffer.from(
          chunk
            .toString('latin1')
            .replaceAll(`\r\n${one.redis.port}\r\n`, `\r\n${toOne.port}\r\n`)
            .replaceAll(`\r\n${other.redis.port}\r\n`, `\r\n${toOther.port}\r\n`),
          'latin1',
        ),
      )
      const redis = { sentinels: [{ host: '127.0.0.1', port: toSentinel.port }], name: 'hub' }
      const path = join(home, 'hub.json')
      await writeFile(path, JSON.stringify({ redis }))
      return { env: { HUB_CONFIG: path }, way: together([toOne, toOther, toSentinel]) }
    },
    faults: { failOver },
  }

  /** Kills the master. The replica takes over, without the commits of the last `behindMs` milliseconds. */
  async function failOver(behindMs: number): Promise<void> {
    master.toReplica.hold()
    await delay(behindMs)
    master.toReplica.cut()
    await master.redis.kill()
    const [failed, next] = [master, replica]
    const client = next.redis.client()
    await until(async () => String(await client.info('replication')).includes('role:master'), 60_000)
    client.disconnect()
    master = next
    replica = failed
    failed.toReplica.open()
    await failed.redis.restart()
    await follow(replica, master)
  }
}

async function startServer(t: Test): Promise<Server> {
  const redis = await startRedis(t, ['repl-diskless-sync-delay 0', 'repl-ping-replica-period 1'])
  return { redis, toReplica: await startNetwork(t, redis.port) }
}

async function follow(replica: Server, master: Server): Promise<void> {
  const client = replica.redis.client()
  await client.replicaof('127.0.0.1', master.toReplica.port)
  await until(async () => String(await client.info('replication')).includes('master_link_status:up'), 60_000)
  client.disconnect()
}

/** Combines several networks: each fault is made in all of them. */
function together(ways: readonly Way[]): Way {
  const each = (act: (way: Way) => void) => () => {
    for (const way of ways) act(way)
  }
  return {
    cut: each((way) => way.cut()),
    hold: each((way) => way.hold()),
    deafen: each((way) => way.deafen()),
    open: each((way) => way.open()),
    drop: each((way) => way.drop()),
    slow(ms) {
      for (const way of ways) way.slow(ms)
    },
  }
}

function isListed(replicas: unknown): boolean {
  return Array.isArray(replicas) && replicas.length > 0
}
