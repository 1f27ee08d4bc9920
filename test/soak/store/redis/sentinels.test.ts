import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { openRedisStore } from '../../../../store/redis/redis.ts'
import { onRedis, startRedis, withoutRedis } from '../../../redis-server.ts'
import { openRedis, text } from '../../../store/open-redis.ts'
import { until } from '../../../until.ts'
import { startNetwork } from '../../fence/network.ts'

/** New Sentinels count failovers from the beginning. The old ones had reached this number. */
const lastEpoch = 7

t.test('a node follows new Sentinels after all old ones are gone', { skip: withoutRedis }, async (t) => {
  const master = await startRedis(t, ['repl-diskless-sync-delay 0'])
  const next = await startRedis(t, [`replicaof 127.0.0.1 ${master.port}`, 'repl-diskless-sync-delay 0'])
  await until(async () => (await next.client().info('replication')).includes('master_link_status:up'))
  const watching = [`sentinel monitor hub 127.0.0.1 ${master.port} 1`, 'sentinel failover-timeout hub 5000']
  const epochs = [`sentinel config-epoch hub ${lastEpoch}`, `sentinel current-epoch ${lastEpoch}`]
  const [named, found] = await Promise.all([
    startRedis(t, [...watching, ...epochs], 'sentinel'),
    startRedis(t, [...watching, ...epochs], 'sentinel'),
  ])
  const asking = named.client()
  for (const [kind, { port }] of [
    ['SENTINELS', found],
    ['REPLICAS', next],
  ] as const) {
    await until(async () => String(await asking.call('SENTINEL', kind, 'hub')).includes(`${port}`))
  }
  const server = { sentinels: [{ host: '127.0.0.1', port: named.port }], name: 'hub' }
  const store = await openRedisStore({ server, project: 'hub', stage: 'test', timeoutMs: 60_000 })
  t.teardown(() => store.close())
  await store.commit([{ put: 'n/1', value: 'x' }])
  // The node has found the other Sentinel, and asked it.
  await until(async () => /cmd=sentinel/.test(String(await found.client().client('LIST'))))

  await found.kill()
  await writeFile(
    join(named.directory, 'redis.conf'),
    [`port ${named.port}`, 'bind 127.0.0.1', `dir ${named.directory}`, ...watching].join('\n'),
  )
  await named.restart()
  // The Sentinel refuses as long as it has not heard from the replica.
  await until(() =>
    asking.call('SENTINEL', 'FAILOVER', 'hub').then(
      () => true,
      () => false,
    ),
  )
  await until(async () => (await next.client().info('replication')).includes('role:master'))
  await store.commit([{ put: 'n/2', value: 'x' }])
  const promoted = await openRedis(t, next.url)
  t.equal(await text(promoted, 'n/2'), 'x')
})

// A rejection that nobody hears ends a node, and fails this test.
onRedis('the connection to a Sentinel breaks while the node subscribes again', async (t, master) => {
  const sentinel = await startRedis(t, [`sentinel monitor hub 127.0.0.1 ${master.port} 1`], 'sentinel')
  let subscriptions = 0
  const network = await startNetwork(t, sentinel.port, (chunk) => {
    const isAnswer = chunk.toString('latin1').startsWith('*3')
    if (chunk.includes('psubscribe') && !isAnswer && ++subscriptions === 2) network.drop()
    return chunk
  })
  const server = { sentinels: [{ host: '127.0.0.1', port: network.port }], name: 'hub' }
  const store = await openRedisStore({ server, project: 'hub', stage: 'test' })
  t.teardown(() => store.close())
  await until(async () => subscriptions === 1)
  network.drop()
  await until(async () => subscriptions === 3)
  await store.commit([{ put: 'n/1', value: 'x' }])
  t.equal(await text(store, 'n/1'), 'x')
})
