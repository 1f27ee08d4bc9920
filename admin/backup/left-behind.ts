import { access } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Store } from '../../store/store.ts'
import { contentOf } from './stored-content.ts'

/**
 * Why a node on Redis may be missing what it had: its data directory holds the store of the time before, and Redis is
 * empty. Says how to move it. Undefined where nothing is left behind.
 */
export async function leftBehind(store: Store, dataDir: string): Promise<string | undefined> {
  if (!store.isShared) return undefined
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
