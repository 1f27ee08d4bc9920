import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openRedisStore } from '../../../../store/redis/redis.ts'
import { type RedisServer, startRedis, withoutRedis } from '../../../redis-server.ts'
import { entries } from '../../../store/open-redis.ts'
import { until } from '../../../until.ts'
import { startNetwork } from '../../fence/network.ts'

/**
 * A split: the master is cut off from its replicas and from most Sentinels, but not from the nodes. The Sentinels
 * promote a replica. When the split ends, the old master throws away what it accepted meanwhile.
 */
t.test('a split', { skip: withoutRedis, jobs: 3 }, async (t) => {
  for (const minReplicas of [0, 1]) {
    for (const replicas of [0, 1]) {
      const name = `min-replicas-to-write ${minReplicas}, HUB_REDIS_REPLICAS ${replicas}`
      t.test(`${name}: nothing that begins after the promotion is lost`, async (t) => {
        const split = await startSplit(t, { minReplicas })
        const load = await startLoad(t, split, replicas)
        await split.begin()
        // Without a replica, the new master takes nothing, or nothing is acknowledged.
        if (replicas + minReplicas > 0) await split.end()
        await load.after(100)
        const ended = await load.end()
        t.comment(`${name}: ${figureOf(split, ended)}`)
        t.strictSame(
          ended.lost.filter(({ begunAt }) => replicas > 0 || begunAt > split.promotedAt()),
          [],
        )
        t.match(load.states()[0], { up: false }, 'the node says that it has left the old master')
      })
    }
  }

  t.test('a replica stays with the old master: the node leaves both', async (t) => {
    const split = await startSplit(t, { replicasThere: 1 })
    const load = await startLoad(t, split, 1)
    await split.begin()
    await startRedis(t, [`replicaof 127.0.0.1 ${split.next.port}`])
    await load.after(100)
    const ended = await load.end()
    t.comment(`a replica with the old master: ${figureOf(split, ended)}`)
    t.strictSame(
      ended.lost.filter(({ begunAt }) => begunAt > split.promotedAt()),
      [],
    )
  })

  // A Sentinel promotes a replica without a wait for what it lacks.
  t.test('a failover that an operator asks for, with a replica that is behind', async (t) => {
    t.test('loses nothing of what waited for the replica', async (t) => {
      const split = await startSplit(t, { downAfterMs: 10_000 })
      const load = await startLoad(t, split, 1)
      split.fallBehind()
      await delay(100)
      await split.failOver()
      await load.after(100)
      t.strictSame((await load.end()).lost, [])
    })

    t.test('loses nothing after a pause of writes (docs/deployment.md)', async (t) => {
      const split = await startSplit(t, { downAfterMs: 10_000 })
      const load = await startLoad(t, split, 0)
      split.fallBehind()
      await load.after(20)
      await split.pauseWrites()
      await split.failOver()
      await load.after(100)
      t.strictSame((await load.end()).lost, [])
    })

    t.test('otherwise loses what the replica lacks', async (t) => {
      const split = await startSplit(t, { downAfterMs: 10_000 })
      const load = await startLoad(t, split, 0)
      split.fallBehind()
      await load.after(20)
      await split.failOver()
      await load.after(100)
      t.not((await load.end()).lost.length, 0)
    })
  })

  t.test('a node that starts in a split believes the newest Sentinel', async (t) => {
    const split = await startSplit(t, { sentinelThere: true })
    await split.begin()
    const store = await openSplit(t, split, 0)
    await store.commit([{ put: 'n/1', value: 'x' }])
    t.strictSame([...(await split.found()).keys()], ['n/1'])
  })
})

type Split = Awaited<ReturnType<typeof startSplit>>

/** `replicasThere`, `sentinelThere`: what stays on the side of the old master. */
async function startSplit(
  t: Test,
  { minReplicas = 0, replicasThere = 0, sentinelThere = false, downAfterMs = 1_000 } = {},
) {
  const settings = [`min-replicas-to-write ${minReplicas}`, 'repl-diskless-sync-delay 0']
  const master = await startRedis(t, [...settings, 'repl-ping-replica-period 1'])
  // The replica and the Sentinels know the master by the address of this network.
  const network = await startNetwork(t, master.port)
  const next = await startRedis(t, [...settings, `replicaof 127.0.0.1 ${network.port}`])
  for (let count = 0; count < replicasThere; count++) {
    await startRedis(t, [...settings, 'replica-priority 0', `replicaof 127.0.0.1 ${master.port}`])
  }
  await until(async () => (await roleOf(next)).includes('master_link_status:up'))
  const quorum = sentinelThere ? 2 : 1
  const watch = (port: number, agreeing = quorum) =>
    startRedis(
      t,
      [
        `sentinel monitor hub 127.0.0.1 ${port} ${agreeing}`,
        `sentinel down-after-milliseconds hub ${downAfterMs}`,
        // After this time, a Sentinel would make the replica follow the master directly, past the network.
        'sentinel failover-timeout hub 60000',
      ],
      'sentinel',
    )
  const there = sentinelThere ? [await watch(master.port)] : []
  // Only the first may begin a failover: two that begin at the same moment vote for themselves, and begin again after
  // two minutes. The second one waits for the third, which is cut off, and only votes.
  const here = await Promise.all(
    Array.from({ length: quorum }, (_, nth) => watch(network.port, nth === 0 ? quorum : quorum + 1)),
  )
  for (const sentinel of [...there, ...here]) {
    await until(async () =>
      String(await sentinel.client().call('SENTINEL', 'REPLICAS', 'hub')).includes(`${next.port}`),
    )
  }
  // Nodes reach the master past the network.
  const reached = await Promise.all(
    here.map(({ port }) =>
      startNetwork(t, port, (chunk) =>
        Buffer.from(
          chunk.toString('latin1').replaceAll(`\r\n${network.port}\r\n`, `\r\n${master.port}\r\n`),
          'latin1',
        ),
      ),
    ),
  )
  const sentinels = [...there, ...reached].map(({ port }) => ({ host: '127.0.0.1', port }))
  let begunAt = 0
  let promotedAt = 0

  return {
    next,
    server: { sentinels, name: 'hub' },
    begunAt: () => begunAt,
    promotedAt: () => promotedAt,
    /** Resolves when the Sentinels have promoted the replica. */
    async begin(): Promise<void> {
      begunAt = performance.now()
      network.hold()
      await until(async () => (await roleOf(next)).includes('role:master'))
      promotedAt = performance.now()
    },
    /** The replica gets nothing, until `pauseWrites` or the end of `failOver`. */
    fallBehind: network.hold,
    /** Resolves when the master takes no writes, and the replica has all earlier ones. */
    async pauseWrites(): Promise<void> {
      await master.client().call('CLIENT', 'PAUSE', 5_000, 'WRITE')
      network.open()
      const written = offsetOf(await roleOf(master), 'master_repl_offset')
      await until(async () => offsetOf(await roleOf(next), 'slave_repl_offset') >= written)
    },
    /** Resolves when the Sentinels have made the replica the master, and the old master its replica. */
    async failOver(): Promise<void> {
      await here[0]?.client().call('SENTINEL', 'FAILOVER', 'hub')
      await until(async () => (await roleOf(next)).includes('role:master'))
      network.open()
      await until(async () => (await roleOf(master)).includes('master_link_status:up'))
    },
    /** The old master follows the new one, as the Sentinels would order some seconds after the split. */
    async end(): Promise<void> {
      network.drop()
      network.open()
      await master.client().replicaof('127.0.0.1', next.port)
    },
    /** What the promoted server has. */
    async found(): Promise<Map<string, string>> {
      const store = await openRedisStore({
        server: { url: next.url },
        project: 'hub',
        stage: 'test',
      })
      return entries(store, 'n/').finally(() => store.close())
    },
  }
}

async function openSplit(
  t: Test,
  { server }: Split,
  replicas: number,
  onConnection = (_: { up: boolean }) => {},
) {
  const space = { project: 'hub', stage: 'test' }
  const store = await openRedisStore({ server, ...space, replicas, timeoutMs: 60_000, onConnection })
  t.teardown(() => store.close())
  return store
}

interface Commit {
  key: string
  begunAt: number
  endedAt: number
}

/** Commits without end. A store that must start again is opened anew, as a node does. */
async function startLoad(t: Test, split: Split, replicas: number) {
  const states: { up: boolean }[] = []
  const open = () => openSplit(t, split, replicas, (state) => states.push(state))
  let store = await open()
  let opening: Promise<void> | undefined
  let count = 0
  let isOver = false
  const acknowledged: Commit[] = []
  const committing = Array.from({ length: 4 }, async () => {
    while (!isOver) {
      const [key, begunAt] = [`n/${count++}`, performance.now()]
      try {
        await store.commit([{ put: key, value: 'x' }])
        acknowledged.push({ key, begunAt, endedAt: performance.now() })
      } catch {
        opening ??= open().then((opened) => {
          store = opened
          opening = undefined
        })
        await opening
      }
      await delay(10)
    }
  })
  const after = async (more: number) => {
    const enough = acknowledged.length + more
    await until(async () => acknowledged.length >= enough)
  }
  await after(50)

  return {
    states: () => states,
    /** Resolves when this many more commits are acknowledged. */
    after,
    async end() {
      isOver = true
      await Promise.all(committing)
      const found = await split.found()
      return {
        acknowledged: acknowledged.length,
        lost: acknowledged.filter(({ key }) => !found.has(key)),
      }
    },
  }
}

/** How much was lost, and for how long after the beginning of the split. */
function figureOf(split: Split, { lost, acknowledged }: { lost: Commit[]; acknowledged: number }): string {
  const spanMs = Math.max(0, ...lost.map(({ endedAt }) => endedAt)) - split.begunAt()
  return `${lost.length} of ${acknowledged} lost${lost.length > 0 ? `, for ${Math.round(spanMs)} ms` : ''}`
}

function offsetOf(replication: string, field: 'master_repl_offset' | 'slave_repl_offset'): number {
  return Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(replication)?.[1])
}

async function roleOf(redis: RedisServer): Promise<string> {
  const client = redis.client()
  const role = await client.info('replication')
  client.disconnect()
  return role
}
