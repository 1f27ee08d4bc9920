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
  t.same(await redisSettingProblems(narrow), [])
  t.same(await redisSettingProblems({ ...narrow, password: 'falsch' }), [])

  const env = { HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' }
  const hub = await startTestHub(t, env)
  const warnings = hub.lines.filter(({ msg }) => msg === 'Redis may lose what was acknowledged')
  t.match(warnings, [
    { level: 40, problem: both[0] },
    { level: 40, problem: both[1] },
  ])
})
