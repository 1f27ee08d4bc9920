import { join } from 'node:path'
import root, { type Test } from 'tap'
import { openEmbeddedStore } from '../store/embedded.ts'
import { openRedisStore } from '../store/redis/redis.ts'
import type { Store } from '../store/store.ts'
import { startRedis, withoutRedis } from './redis-server.ts'

export type Driver = 'embedded' | 'redis'

/**
 * Settings of a node for a new store. On Redis, they name a new, empty database. For the embedded store, they are
 * empty: that store lies in the data directory.
 */
export type StoreSettings = Record<string, string>

/** Adds a test of whole nodes for each store driver. */
export function onEachStore(
  name: string,
  test: (t: Test, store: StoreSettings, driver: Driver) => Promise<void>,
): void {
  for (const driver of ['embedded', 'redis'] as const) onStore(driver, name, test)
}

/** Adds a test of whole nodes for one store driver. */
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

/** Settings for a new store: on Redis, another database of the same server. */
async function newStore(driver: Driver): Promise<StoreSettings> {
  if (driver === 'embedded') return {}
  redis ??= startRedis(root, ['databases 100'])
  const { url } = await redis
  return { HUB_REDIS_URL: `${url}/${databases++}`, HUB_PUBLIC_URL: 'https://hub.example' }
}

/** Opens the store of a node that is not running. */
export function openStoreOf(settings: StoreSettings, dataDir: string): Promise<Store> {
  const url = settings.HUB_REDIS_URL
  if (url === undefined) return openEmbeddedStore(join(dataDir, 'store'))
  return openRedisStore({ server: { url }, project: 'hub', stage: 'test' })
}
