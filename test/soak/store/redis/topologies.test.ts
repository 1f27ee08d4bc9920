import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { ensureDevelopmentCertificates } from '../../../../certs/development.ts'
import { type RedisServer as Address, createRedisClients } from '../../../../store/redis/client.ts'
import { openRedisStore } from '../../../../store/redis/redis.ts'
import { keysOf } from '../../../../store/redis/script.ts'
import { freePort } from '../../../free-port.ts'
import { startRedis, withoutRedis } from '../../../redis-server.ts'
import { entries, numbered, text } from '../../../store/open-redis.ts'
import { storeSuite } from '../../../store/suite.ts'
import { until } from '../../../until.ts'

/** The permissions of the Redis user of a hub, as in docs/operators.md. */
const permissions = '~{hub:test}:* resetchannels -@all +@read +@write +@scripting +@connection +info'

t.test('Redis in every form', { skip: withoutRedis }, async (t) => {
  t.test('TLS with a CA of its own', async (t) => {
    const directory = t.testdir()
    const certificates = await ensureDevelopmentCertificates(join(directory, 'ours'))
    const strangers = await ensureDevelopmentCertificates(join(directory, 'others'))
    const port = await freePort()
    const redis = await startRedis(t, [
      'port 0',
      `tls-port ${port}`,
      `tls-cert-file ${certificates.cert}`,
      `tls-key-file ${certificates.key}`,
      'tls-auth-clients no',
    ])
    const url = `rediss://localhost:${port}`
    const [ours, others] = [certificates.ca, strangers.ca].map((path) => readFileSync(path, 'utf8'))
    if (ours === undefined || others === undefined) throw new Error('no CA')
    await worksOn(t, { url, ca: () => ours })
    // At once: the time for an answer is not over.
    const message = /^Redis answered, and refused: .*certificate.*; redis\.ca may name a CA to trust$/
    await t.rejects(open({ url, ca: () => others }, 600_000), { cause: { message } })
    await t.rejects(open({ url }, 600_000), { cause: { message } })

    // Disconnecting at any step of the TLS handshake must not end the process.
    const { connect } = await createRedisClients({ url, ca: () => others }, 1_500)
    for (let round = 0; round < 150; round++) {
      const client = connect('test')
      client.on('error', () => {})
      await delay(round % 12)
      client.disconnect()
    }

    let current = ours
    const store = await open({ url, ca: () => current })
    t.teardown(() => store.close())
    await store.commit([{ put: 'k/1', value: 'x' }])
    current = others
    const client = redis.client({ port, host: 'localhost', tls: { ca: ours } })
    const { cert, key } = strangers
    await client.call('CONFIG', 'SET', 'tls-cert-file', cert, 'tls-key-file', key)
    await client.client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await store.commit([{ put: 'k/2', value: 'x' }])
  })

  t.test('user and password; a user who may do no more than needed', async (t) => {
    const redis = await startRedis(t, ['requirepass geheim', `user hub on >auch:geheim ${permissions}`])
    const host = `127.0.0.1:${redis.port}`
    await worksOn(t, { url: `redis://:geheim@${host}` })
    await worksOn(t, { url: `redis://hub:${encodeURIComponent('auch:geheim')}@${host}` })
    await worksOn(t, { url: redis.url, username: 'hub', password: 'auch:geheim' })
    await worksOn(t, { url: `redis://hub:falsch@${host}`, password: 'auch:geheim' })
    await worksOn(t, { url: `redis://:geheim@${host}/3` })
    for (const server of [{ url: redis.url }, { url: redis.url, password: 'falsch-geheim' }]) {
      // At once: the time for an answer is not over.
      const error = await open(server, 600_000).catch((error: unknown) => error)
      t.match(error, { cause: { message: /^Redis answered, and refused: .*(NOAUTH|WRONGPASS)/ } })
      t.notMatch(inspect(error, { depth: 9, showHidden: true }), /geheim/)
    }
    const malformed = await open({ url: 'redis://:geheim@x:y' }, 400).catch((error: unknown) => error)
    t.match(malformed, { message: 'the URL of Redis is malformed' })
    t.notMatch(inspect(malformed, { depth: 9, showHidden: true }), /geheim/)
  })

  t.test('Cluster', async (t) => {
    const redis = await startRedis(t, [
      'cluster-enabled yes',
      `cluster-port ${await freePort()}`,
      'cluster-announce-ip 127.0.0.1', // in a cluster of one, no other server tells this server its address
      'cluster-node-timeout 2000',
      `user hub on >geheim ${permissions} +cluster`,
    ])
    const client = redis.client()
    await client.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16383)
    await until(async () => String(await client.cluster('INFO')).includes('cluster_state:ok'))
    const cluster = [{ host: '127.0.0.1', port: redis.port }]
    await worksOn(t, { cluster })
    await worksOn(t, { cluster, username: 'hub', password: 'geheim' })

    storeSuite(t, async (t) => {
      const space = randomUUID()
      let current = await open({ cluster }, undefined, space)
      t.teardown(() => current.close())
      return {
        store: current,
        async reopen() {
          await current.close()
          current = await open({ cluster }, undefined, space)
          return current
        },
      }
    })

    t.test('comes back after a restart', async (t) => {
      // Redis may take longer to start than a commit usually waits.
      const [store, follower] = [await open({ cluster }, 30_000), await open({ cluster }, 30_000)]
      t.teardown(() => Promise.all([store.close(), follower.close()]))
      const told: string[] = []
      follower.follow((changes) => {
        for (const change of changes) if ('put' in change) told.push(change.put)
      }, failed)
      const all = numbered(60)
      for (const [index, key] of all.entries()) {
        const committed = store.commit([{ put: key, value: 'x' }])
        if (index === 30) await redis.restart()
        await committed
      }
      await until(async () => told.length >= all.length)
      t.strictSame(told, all)
    })
  })

  t.test('Sentinel, and a failover in the middle', async (t) => {
    const master = await startRedis(t)
    const replica = await startRedis(t, [`replicaof 127.0.0.1 ${master.port}`, 'repl-diskless-sync-delay 0'])
    await master.client().config('SET', 'repl-diskless-sync-delay', '0')
    await until(async () =>
      String(await replica.client().info('replication')).includes('master_link_status:up'),
    )
    const sentinel = await startRedis(
      t,
      [
        `sentinel monitor hub 127.0.0.1 ${master.port} 1`,
        'sentinel down-after-milliseconds hub 500',
        'sentinel failover-timeout hub 5000',
      ],
      'sentinel',
    )
    const server = { sentinels: [{ host: '127.0.0.1', port: sentinel.port }], name: 'hub' }
    await worksOn(t, server)
    const message = /^Redis answered, and refused: the Sentinel 127.0.0.1:\d+: .*No such master/
    await t.rejects(open({ ...server, name: 'other' }, 600_000), { cause: { message } })
    const asking = sentinel.client()
    await until(async () => (await replicasOf(asking)).length > 0)

    const [store, follower] = [await open(server, 60_000), await open(server, 60_000)]
    t.teardown(() => Promise.all([store.close(), follower.close()]))
    const memory = new Map<string, string>()
    let gaps = 0
    follower.follow(
      (changes) => {
        for (const change of changes) if ('put' in change) memory.set(change.put, `${change.value}`)
      },
      () => {
        gaps++
        void entries(follower, 'n/').then((loaded) => {
          for (const [key, value] of loaded) memory.set(key, value)
        })
      },
    )
    const all = numbered(100)
    for (const [index, key] of all.entries()) {
      const committed = store.commit([{ put: key, value: key }])
      if (index === 50) {
        // Redis acknowledges before it replicates: without WAIT, commits would be lost.
        await committed
        // WAIT is about the writes of its own connection.
        const client = master.client()
        await client.set('own', 'x')
        while ((await client.wait(1, 1_000)) === 0);
        await master.kill()
      }
      await committed
      await delay(5)
    }
    await until(async () => String(await replica.client().info('replication')).includes('role:master'))
    await store.commit([{ put: 'n/last', value: 'x' }])
    t.equal(
      await replica.client().hexists(keysOf('hub:test').values, 'n/last'),
      1,
      'it follows the Sentinels',
    )
    await until(async () => memory.has('n/last'))
    t.ok(gaps <= 1)
    t.equal(await text(store, 'n/last'), 'x')
  })
})

function open(server: Address, timeoutMs = 5_000, project = 'hub') {
  return openRedisStore({ server, project, stage: 'test', timeoutMs })
}

/** Checks that stores on this server commit, read and follow. */
async function worksOn(t: Test, server: Address): Promise<void> {
  const [store, other] = [await open(server), await open(server)]
  const told = new Promise((resolve, reject) => other.follow(resolve, reject))
  await store.commit([{ put: 'k/1', value: 'x' }, { put: 'k/2', value: 'y' }, { del: 'k/2' }])
  t.match(await told, [{ put: 'k/1' }, { put: 'k/2' }, { del: 'k/2' }])
  t.strictSame([...(await entries(other, 'k/')).keys()], ['k/1'])
  await Promise.all([store.close(), other.close()])
}

async function replicasOf(sentinel: Redis): Promise<unknown[]> {
  const replicas = await sentinel.call('SENTINEL', 'REPLICAS', 'hub')
  return Array.isArray(replicas) ? replicas : []
}

function failed(): never {
  throw new Error('called')
}
