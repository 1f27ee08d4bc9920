import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import { contentOf } from './stored-content.ts'

/** Warns if Redis is empty although the data directory has a store, and says how to move the data. */
export async function warnOfLeftBehind(store: Store, dataDir: string, log: Pick<Log, 'warn'>): Promise<void> {
  if (store.driver !== 'redis') return
  const directory = resolve(dataDir)
  const isThere = existsSync(join(directory, 'store', 'CURRENT'))
  if (!isThere || (await contentOf(store, dataDir)).length > 0) return
  const exporting = `env -u HUB_CONFIG -u HUB_REDIS_URL HUB_DATA_DIR=${directory} hubctl export hub.export --stopped`
  const importing = `HUB_DATA_DIR=${directory} hubctl import hub.export`
  log.warn(
    `Redis is empty, and ${join(directory, 'store')} has what this node stored without Redis. To move it: ${exporting} && ${importing}`,
  )
}
