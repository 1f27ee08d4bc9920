import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../../../config/config.ts'
import { openRedisStore } from '../../../../store/redis/redis.ts'
import { freePort } from '../../../free-port.ts'
import { startRedis, withoutRedis } from '../../../redis-server.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'

/** Whether ioredis, a CommonJS module, is in the cache of loaded modules. */
const isLoaded = () =>
  Object.keys(createRequire(import.meta.url).cache).some((path) => path.includes('/node_modules/ioredis/'))

t.test('ioredis is loaded when a store on Redis is opened, and not before', async (t) => {
  const hub = await startTestHub(t)
  await hub.close()
  t.notOk(isLoaded(), 'a single node works without')
  const redisUrl = `redis://127.0.0.1:${await freePort()}`
  const loaded = loadConfig({ HUB_REDIS_URL: redisUrl, HUB_PUBLIC_URL: 'https://hub.example' }, '/')
  if ('problems' in loaded) throw new Error(loaded.problems.join())
  const { redisUrl: url, project, stage } = loaded.config
  const server = { url }
  await t.rejects(openRedisStore({ server, project, stage, timeoutMs: 100 }))
  t.ok(isLoaded(), 'this would show it')
})

t.test('a node without the Redis of its configuration does not start, and says why', async (t) => {
  const directory = await temporaryDirectory(t)
  const port = await freePort()
  const env = { HUB_REDIS_URL: `redis://127.0.0.1:${port}`, HUB_PUBLIC_URL: 'https://hub.example' }
  await t.rejects(startTestHub(t, env, directory), {
    message: `HUB_REDIS_URL: "redis://127.0.0.1:${port}", expected a Redis that answers`,
    cause: { message: `the Redis on 127.0.0.1:${port} cannot be used` },
  })
})

t.test('a node whose password Redis refuses says so', { skip: withoutRedis }, async (t) => {
  const redis = await startRedis(t, ['requirepass geheim'])
  const redisUrl = `redis://:falsch@127.0.0.1:${redis.port}`
  const env = { HUB_REDIS_URL: redisUrl, HUB_PUBLIC_URL: 'https://hub.example' }
  await t.rejects(startTestHub(t, env, await temporaryDirectory(t)), {
    message: `HUB_REDIS_URL: "redis://***@127.0.0.1:${redis.port}", expected a Redis that takes this user and password`,
    cause: { cause: { message: /^Redis answered, and refused: WRONGPASS/ } },
  })
})

t.test('a node whose CA for Redis is no certificate names the setting', async (t) => {
  const directory = await temporaryDirectory(t)
  const [ca, path] = ['ca.pem', 'hub.json'].map((name) => join(directory, name))
  if (ca === undefined || path === undefined) throw new Error('no path')
  await writeFile(ca, 'no certificate')
  await writeFile(path, JSON.stringify({ redis: { ca } }))
  const env = { HUB_CONFIG: path, HUB_REDIS_URL: 'rediss://127.0.0.1', HUB_PUBLIC_URL: 'https://hub.example' }
  await t.rejects(startTestHub(t, env, directory), {
    message: `redis.ca: ${JSON.stringify(ca)}, expected a certificate in PEM`,
  })
})
