import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { loadConfig } from '../../config/config.ts'
import type { Config } from '../../config/settings.ts'
import { version } from '../../config/version.ts'
import { refuseBeforeJournal } from '../../migrate/before-journal.ts'
import { openUnused } from '../../store/open.ts'
import { formatOf } from '../../store/stored-value.ts'
import { exported } from './exporting.ts'
import { membersOf } from './stored-content.ts'

/**
 * Opens the store that the environment configures, and returns the lines of its export. Rejects if a node uses the
 * store, or if the store is missing or belongs to another user.
 */
export async function openStopped(env: NodeJS.ProcessEnv, cwd: string) {
  const config = configOf(env, cwd)
  await checkOwner(config)
  const store = await openUnused(config)
  try {
    if ((await formatOf(store)) === undefined) {
      await refuseBeforeJournal(store)
      throw new Error('the store is empty: start a node once')
    }
    const members = await membersOf(store)
    if (members.length > 0) {
      throw new Error(
        `nodes use it (${members.join(', ')}): leave out --stopped to ask one of them, or stop them; one that has crashed has to be started and stopped`,
      )
    }
  } catch (error) {
    await store.close()
    throw error
  }
  const lines = exported({ store, dataDir: config.dataDir, release: version, clock: Date.now })
  return { lines, close: () => store.close() }
}

/** The data directory of a node that is stopped. */
export async function dataDirOfStopped(env: NodeJS.ProcessEnv, cwd: string): Promise<string> {
  const { dataDir } = configOf(env, cwd)
  await stat(dataDir).catch(() => {
    throw new Error(`there is no data directory ${dataDir}: set HUB_DATA_DIR as for the node`)
  })
  return dataDir
}

/**
 * Loads the configuration without the values of `HUB_PUBLIC_URL` and `HUB_REDIS_REPLICAS`. The store does not depend on
 * the two, so wrong values must not matter. Both get values here that pass all checks.
 */
function configOf(env: NodeJS.ProcessEnv, cwd: string): Config {
  const loaded = loadConfig({ ...env, HUB_PUBLIC_URL: 'https://localhost', HUB_REDIS_REPLICAS: '' }, cwd)
  if ('problems' in loaded) throw new Error(loaded.problems.join('; '))
  return loaded.config
}

/**
 * Rejects if the store belongs to another user, or is missing. In the store of another user, LevelDB would add files of
 * the present user. The owner's node could not use these files.
 */
async function checkOwner({ dataDir, redisUrl, redis }: Config): Promise<void> {
  if (redisUrl !== undefined || redis !== undefined) return
  const directory = join(dataDir, 'store')
  const { uid } = await stat(directory).catch(() => {
    throw new Error(`there is no store ${directory}: set HUB_DATA_DIR as for the node`)
  })
  if (uid !== process.getuid?.())
    throw new Error(`${directory} belongs to another user: run this as that user`)
}
