import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { problemsOf, redisSettingProblems, watchRedisSettings } from '../../../store/redis/settings.ts'
import { onRedis, startRedis, withoutRedis } from '../../redis-server.ts'
import { startTestHub } from '../../start-hub.ts'
import { until } from '../../until.ts'

t.test('what breaks the promise of an acknowledgement', async (t) => {
  const good = { appendonly: '1', appendfsync: 'always', policy: 'noeviction' }
  t.same(problemsOf(good), [])
  t.match(problemsOf({ ...good, appendfsync: 'everysec' }), [/^appendfsync is everysec/])
  t.match(problemsOf({ ...good, appendonly: '0' }), [/^appendonly is no/])
  t.match(problemsOf({ ...good, appendfsync: 'no' }), [/^appendfsync is no/])
  t.match(problemsOf({ ...good, policy: 'volatile-ttl' }), [/^maxmemory-policy is volatile-ttl/])
  t.match(problemsOf({ appendonly: '0', appendfsync: 'no', policy: 'allkeys-lru' }), [/only/, /policy/])
  t.same(problemsOf({ appendonly: undefined, appendfsync: undefined, policy: undefined }), [])
})

t.test('a Redis of which this is asked', { skip: withoutRedis }, async (t) => {
  const redis = await startRedis(t, ['user narrow on >geheim ~* +@read +@write +@connection +info'])
  const client = redis.client()
  const narrow = { url: redis.url, username: 'narrow', password: 'geheim' }
  t.same(await redisSettingProblems({ url: redis.url }), [])
  await client.config('SET', 'appendfsync', 'everysec')
  t.match(await redisSettingProblems({ url: redis.url }), [/^appendfsync is everysec/])
  await client.config('SET', 'appendfsync', 'no')
  t.match(await redisSettingProblems({ url: redis.url }), [/^appendfsync is no/])
  t.same(await redisSettingProblems(narrow), [], 'CONFIG is forbidden: nothing is known of it')
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await client.config('SET', 'appendonly', 'no')
  const both = [/^appendonly is no/, /^maxmemory-policy is allkeys-lru/]
  t.match(await redisSettingProblems({ url: redis.url }), both)
  t.match(await redisSettingProblems(narrow), both, 'INFO is enough')
  await client.acl('SETUSER', 'narrow', '-info')
  t.same(await redisSettingProblems(narrow), undefined, 'nothing may be asked')
  t.same(await redisSettingProblems({ ...narrow, password: 'falsch' }), undefined, 'it does not answer')

  const env = { HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' }
  const hub = await startTestHub(t, env)
  const warnings = hub.lines.filter(({ msg }) => msg === 'Redis may lose what was acknowledged')
  t.match(warnings, [
    { level: 40, problem: both[0] },
    { level: 40, problem: both[1] },
  ])
})

onRedis('a change of a setting is told once, and so is its end', async (t, redis) => {
  const client = redis.client()
  const told: [problem: string, isMended: boolean][] = []
  const watch = await watchRedisSettings({
    server: { url: redis.url },
    replicas: 0,
    onChange: (...change) => void told.push(change),
    lookMs: 50,
  })
  t.teardown(watch.close)
  t.same(watch.problems(), [])
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await until(() => watch.problems().length === 1)
  redis.pause()
  await delay(100)
  redis.resume()
  await client.config('SET', 'maxmemory-policy', 'noeviction')
  await until(() => watch.problems().length === 0)
  t.match(told, [
    [/^maxmemory-policy is allkeys-lru/, false],
    [/^maxmemory-policy is allkeys-lru/, true],
  ])
  t.equal(told.length, 2)
})

t.test('with Sentinels, events that no replica has may be lost', async (t) => {
  const server = { sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'hub' }
  for (const [replicas, problems] of [
    [0, [/^HUB_REDIS_REPLICAS is 0: a failover loses/]],
    [1, []],
  ] as const) {
    const watch = await watchRedisSettings({ server, replicas, onChange: () => undefined })
    t.match(watch.problems(), problems)
    t.equal(watch.problems().length, problems.length)
    watch.close()
  }
})
