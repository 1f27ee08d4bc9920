import { families, prefixOf } from '../store/keys.ts'

/**
 * Throws if a node has stored a key in this Redis that no row of `store/keys.ts` has. Each Redis of a test asks this at
 * its end. Does nothing if the Redis does not answer: a test may have killed or paused it.
 */
export async function checkStoredKeys(port: number): Promise<void> {
  const strange = await strangeKeys(port).catch(() => [])
  if (strange.length > 0) throw new Error(`keys without a row in store/keys.ts: ${strange.join(', ')}`)
}

async function strangeKeys(port: number): Promise<string[]> {
  const { Redis } = await import('ioredis')
  const options = {
    connectTimeout: 500,
    commandTimeout: 500,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  }
  const client = new Redis({ port, lazyConnect: true, enableReadyCheck: false, ...options })
  client.on('error', () => {})
  try {
    await client.connect()
    const strange = new Set<string>()
    for (const [, database = ''] of (await client.info('keyspace')).matchAll(/^db(\d+):/gm)) {
      await client.select(Number(database))
      for (const values of await client.keys('{*}:2:values')) {
        // Without a format no node has written it, but a test of the driver.
        if (!(await client.hexists(values, 'format'))) continue
        const keys = await client.zrange(values.replace(/values$/, 'keys'), 0, -1)
        for (const key of keys) if (!families.has(prefixOf(key))) strange.add(prefixOf(key))
      }
    }
    return [...strange]
  } finally {
    client.disconnect()
  }
}
