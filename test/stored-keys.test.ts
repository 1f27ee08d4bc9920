import { formatChange } from '../store/stored-value.ts'
import { onRedis } from './redis-server.ts'
import { openRedis } from './store/open-redis.ts'
import { checkStoredKeys } from './stored-keys.ts'

onRedis('a key without a row is noticed', async (t, { port, url, client }) => {
  const store = await openRedis(t, url)
  await store.commit([{ put: 'unheard-of/x', value: '' }])
  await checkStoredKeys(port)
  await store.commit([formatChange(), { put: 'topic/x', value: '' }])
  await t.rejects(checkStoredKeys(port), { message: 'keys without a row in store/keys.ts: unheard-of/' })
  await client().flushall()
})
