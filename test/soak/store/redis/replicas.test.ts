import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openRedisStore } from '../../../../store/redis/redis.ts'
import { type RedisServer, startRedis, withoutRedis } from '../../../redis-server.ts'
import { entries, openRedis } from '../../../store/open-redis.ts'
import { startNetwork } from '../../../store/slow-network.ts'

const put = (key: string) => ({ put: key, value: 'x' })

t.test('replicas that must have a commit', { skip: withoutRedis }, async (t) => {
  t.test('it waits for a replica that is stopped, also where this node reads of it in the log', async (t) => {
    const { master, replica } = await startPair(t)
    const store = await openRedis(t, master.url, { replicas: 1, timeoutMs: 20_000 })
    const other = await openRedis(t, master.url)
    const told: string[] = []
    other.follow((changes) => {
      for (const change of changes) if ('put' in change) told.push(change.put)
    }, failed)
    store.follow(failed, failed)
    await store.commit([put('k/1')])
    replica.pause()
    const settled: string[] = []
    const commits = ['k/2', 'k/3'].map((key) => store.commit([put(key)]).then(() => settled.push(key)))
    while (!told.includes('k/2')) await delay(5)
    t.equal(await nothingReplicatedFor(master, 500), 0)
    t.strictSame(settled, [])
    await killStoreConnections(master)
    t.equal(await nothingReplicatedFor(master, 500), 0)
    t.strictSame(settled, [], 'nor on another connection')
    replica.resume()
    await Promise.all(commits)
    t.strictSame(settled, ['k/2', 'k/3'])
  })

  t.test('without one in time a commit rejects as one that may have been applied', async (t) => {
    const { master, replica } = await startPair(t)
    const store = await openRedis(t, master.url, { replicas: 1, timeoutMs: 2_000 })
    const told: string[] = []
    store.follow((changes) => {
      for (const change of changes) if ('put' in change) told.push(change.put)
    }, failed)
    await store.commit([put('k/0')])
    replica.pause()
    const message =
      /^not committed, it may still be applied: 0 of 1 replicas of Redis have it \(HUB_REDIS_REPLICAS\)$/
    await t.rejects(store.commit([put('k/1')]), { message })
    await t.rejects(store.commit([{ ...put('k/2'), when: 'present' }]), { message }, 'a failed one as well')
    replica.resume()
    for (;;) {
      if (
        await store.commit([put('k/3')]).then(
          () => true,
          () => false,
        )
      )
        break
    }
    t.strictSame(
      told.filter((key) => key !== 'k/3'),
      ['k/1'],
      'and is told like those of others',
    )
  })

  t.test('as many as there should be', async (t) => {
    const { master } = await startPair(t)
    const store = await openRedis(t, master.url, { replicas: 2, timeoutMs: 2_000 })
    await t.rejects(store.commit([put('k/1')]), {
      message: /1 of 2 replicas of Redis have it \(HUB_REDIS_REPLICAS\)$/,
    })
  })

  for (const replicas of [0, 1]) {
    const name = replicas === 0 ? 'what it lacks is lost' : 'no acknowledged commit is lost'
    t.test(
      `a failover to a replica that was 3 s behind, with ${replicas} to wait for: ${name}`,
      async (t) => {
        const { master, replica, network } = await startPair(t)
        const sentinel = await startRedis(
          t,
          [
            `sentinel monitor hub 127.0.0.1 ${master.port} 1`,
            'sentinel down-after-milliseconds hub 500',
            // After this time, the Sentinel would make the replica follow the master directly, past the network.
            'sentinel failover-timeout hub 60000',
          ],
          'sentinel',
        )
        const asking = sentinel.client()
        while (!String(await asking.call('SENTINEL', 'REPLICAS', 'hub')).includes(String(replica.port)))
          await delay(20)
        const server = { sentinels: [{ host: '127.0.0.1', port: sentinel.port }], name: 'hub' }
        const open = async () => {
          const space = { project: 'hub', stage: 'test' }
          const store = await openRedisStore({ server, ...space, replicas, timeoutMs: 60_000 })
          t.teardown(() => store.close())
          return store
        }
        const store = await open()
        let count = 0
        let isOver = false
        const acknowledged: string[] = []
        const committing = Promise.allSettled(
          Array.from({ length: 8 }, async () => {
            while (!isOver) {
              const key = `n/${count++}`
              await store.commit([put(key)])
              acknowledged.push(key)
              await delay(10)
            }
          }),
        )
        const until = async (isReached: () => boolean) => {
          while (!isReached()) await delay(5)
        }
        await until(() => acknowledged.length >= 100)
        network.hold()
        t.equal(await nothingReplicatedFor(master, 3_000), 0)
        const before = acknowledged.length
        await master.kill()
        const onReplica = replica.client()
        while (!String(await onReplica.info('replication')).includes('role:master')) await delay(20)
        // The new master has no replica. If commits must reach a replica, the test starts one.
        t.comment(`${before} acknowledged before the failover`)
        if (replicas > 0) {
          await startRedis(t, [`replicaof 127.0.0.1 ${replica.port}`])
          await until(() => acknowledged.length >= before + 50)
          isOver = true
        }
        const outcomes = await committing
        const found = await entries(await open(), 'n/')
        const lost = acknowledged.filter((key) => !found.has(key))
        t.comment(`${lost.length} of ${acknowledged.length} lost`)
        if (replicas === 0) {
          t.ok(lost.length > 0)
          for (const outcome of outcomes) t.match(outcome, { reason: { message: /must start again/ } })
        } else {
          t.strictSame(lost, [])
          for (const outcome of outcomes) t.match(outcome, { status: 'fulfilled' })
        }
      },
    )
  }
})

/** Starts a master, and an up-to-date replica behind `network`. */
async function startPair(t: Test) {
  const master = await startRedis(t, ['repl-diskless-sync-delay 0'])
  const network = await startNetwork(t, master.port)
  const replica = await startRedis(t, [
    `replicaof 127.0.0.1 ${new URL(network.url).port}`,
    'repl-diskless-sync-delay 0',
  ])
  const client = replica.client()
  while (!String(await client.info('replication')).includes('master_link_status:up')) await delay(20)
  return { master, network, replica }
}

/** Writes a key. Resolves with 1 when a replica has the key, with 0 after `ms` milliseconds. */
async function nothingReplicatedFor(master: RedisServer, ms: number): Promise<number> {
  const client = master.client()
  await client.set('own', 'x')
  return client.wait(1, ms)
}

async function killStoreConnections(master: RedisServer): Promise<void> {
  const client = master.client()
  const list = String(await client.client('LIST'))
  for (const [, id = ''] of list.matchAll(/^id=(\d+) .*name=hub-store /gm))
    await client.client('KILL', 'ID', id)
}

function failed(): never {
  throw new Error('called')
}
