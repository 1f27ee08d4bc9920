import { access } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Store } from '../../store/store.ts'
import { contentOf } from './stored-content.ts'

/**
 * A warning if Redis is empty although the data directory has a store. The warning says how to move the data. Undefined
 * if there is nothing to move.
 */
export async function leftBehind(store: Store, dataDir: string): Promise<string | undefined> {
  if (store.driver !== 'redis') return undefined
  const directory = resolve(dataDir)
  const isThere = await access(join(directory, 'store', 'CURRENT')).then(
    () => true,
    () => false,
  )
  if (!isThere || (await contentOf(store, dataDir)).length > 0) return undefined
  const exporting = `env -u HUB_CONFIG -u HUB_REDIS_URL HUB_DATA_DIR=${directory} hubctl export hub.export --stopped`
  const importing = `HUB_DATA_DIR=${directory} hubctl import hub.export`
  return `Redis is empty, and ${join(directory, 'store')} has what this node stored without Redis. To move it: ${exporting} && ${importing}`
}
