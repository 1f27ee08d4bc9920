import t from 'tap'
import { problemsOf, redisSettingProblems } from '../../../store/redis/settings.ts'
import { startRedis, withoutRedis } from '../../redis-server.ts'
import { startTestHub } from '../../start-hub.ts'

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
  t.same(await redisSettingProblems({ url: redis.url }, 0), [])
  await client.config('SET', 'appendfsync', 'everysec')
  t.match(await redisSettingProblems({ url: redis.url }, 0), [/^appendfsync is everysec/])
  await client.config('SET', 'appendfsync', 'no')
  t.match(await redisSettingProblems({ url: redis.url }, 0), [/^appendfsync is no/])
  t.same(await redisSettingProblems(narrow, 0), [], 'CONFIG is forbidden: nothing is known of it')
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await client.config('SET', 'appendonly', 'no')
  const both = [/^appendonly is no/, /^maxmemory-policy is allkeys-lru/]
  t.match(await redisSettingProblems({ url: redis.url }, 0), both)
  t.match(await redisSettingProblems(narrow, 0), both, 'INFO is enough')
  await client.acl('SETUSER', 'narrow', '-info')
  t.same(await redisSettingProblems(narrow, 0), [])
  t.same(await redisSettingProblems({ ...narrow, password: 'falsch' }, 0), [])

  const sentinels = { sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'hub' }
  t.match(await redisSettingProblems(sentinels, 0), [/^HUB_REDIS_REPLICAS is 0: a failover loses/])
  t.same(await redisSettingProblems(sentinels, 1), [])

  const env = { HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' }
  const hub = await startTestHub(t, env)
  const warnings = hub.lines.filter(({ msg }) => msg === 'Redis may lose what was acknowledged')
  t.match(warnings, [
    { level: 40, problem: both[0] },
    { level: 40, problem: both[1] },
  ])
})
