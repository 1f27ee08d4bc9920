import type { Test } from 'tap'
import { openRedisStore, type RedisStoreOptions } from '../../store/redis/redis.ts'
import type { Store } from '../../store/store.ts'

/** One node's store on a Redis of the test, closed when the test ends. */
export async function openRedis(t: Test, url: string, options: Partial<RedisStoreOptions> = {}) {
  const store = await openRedisStore({ server: { url }, project: 'hub', stage: 'test', ...options })
  t.teardown(() => store.close())
  return store
}

export async function text(store: Store, key: string): Promise<string | undefined> {
  return (await store.get(key))?.toString()
}

export async function entries(store: Store, prefix: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for await (const [key, value] of store.range(prefix)) found.set(key, value.toString())
  return found
}

export function numbered(count: number, prefix = 'n/'): string[] {
  return Array.from({ length: count }, (_, index) => prefix + String(index).padStart(5, '0'))
}
