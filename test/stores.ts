import { join } from 'node:path'
import root, { type Test } from 'tap'
import { openEmbeddedStore } from '../store/embedded.ts'
import { openRedisStore } from '../store/redis/redis.ts'
import type { Store } from '../store/store.ts'
import { startRedis, withoutRedis } from './redis-server.ts'

export type Driver = 'embedded' | 'redis'

/** The settings of a node on a store of its own: empty at first, and the same for every node that has them. */
export type StoreSettings = Record<string, string>

/** A test of whole nodes that must hold on each store. */
export function onEachStore(
  name: string,
  test: (t: Test, store: StoreSettings, driver: Driver) => Promise<void>,
): void {
  for (const driver of ['embedded', 'redis'] as const) onStore(driver, name, test)
}

/** The same on one of them. */
export function onStore(
  driver: Driver,
  name: string,
  test: (t: Test, store: StoreSettings, driver: Driver) => Promise<void>,
): void {
  const skip = driver === 'redis' && withoutRedis
  root.test(`${name}, on ${driver}`, { skip }, async (t) => test(t, await newStore(driver), driver))
}

let redis: ReturnType<typeof startRedis> | undefined
let databases = 0

/** One Redis is enough for a test file: each store in it is a database. */
async function newStore(driver: Driver): Promise<StoreSettings> {
  if (driver === 'embedded') return {}
  redis ??= startRedis(root, ['databases 100'])
  const { url } = await redis
  return { HUB_REDIS_URL: `${url}/${databases++}`, HUB_PUBLIC_URL: 'https://hub.example' }
}

/** What the store of a node holds that is not running. */
export function openStoreOf(settings: StoreSettings, dataDir: string): Promise<Store> {
  const url = settings.HUB_REDIS_URL
  if (url === undefined) return openEmbeddedStore(join(dataDir, 'store'))
  return openRedisStore({ server: { url }, project: 'hub', stage: 'test' })
}
