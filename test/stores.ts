import type { Test } from 'tap'
import { startRedis, withoutRedis } from './redis-server.ts'

/** The stores a node runs on, for tests that must hold on each; `skip` says why one cannot be tested here. */
export const stores = [
  { store: 'embedded', skip: false },
  { store: 'redis', skip: withoutRedis },
] as const

/** The settings of a node on a store of the test's own. */
export async function storeSettings(t: Test, store: 'embedded' | 'redis'): Promise<Record<string, string>> {
  if (store === 'embedded') return {}
  const { url } = await startRedis(t)
  return { HUB_REDIS_URL: url, HUB_PUBLIC_URL: 'https://hub.example' }
}
