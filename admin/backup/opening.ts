import type { CurrentCa } from '../../config/ca-files.ts'
import type { Config } from '../../config/settings.ts'
import { migrate } from '../../migrate/migrate.ts'
import { openStore } from '../../store/open.ts'
import type { Log } from '../../telemetry/log.ts'
import { checkSocketPath, socketPathIn } from '../socket.ts'
import { isImporting } from './import-mark.ts'
import { type ImportOutcome, importWaiting } from './importing.ts'
import { warnOfLeftBehind } from './left-behind.ts'
import { nodesOf } from './stored-content.ts'

/**
 * Opens the store of a node, brings it into the form of this release, and imports a waiting export. `imported`: the
 * outcome of the import. Rejects if another node runs in the data directory.
 */
export async function openStoreAtStart(
  config: Config,
  name: string,
  log: Log,
  of: {
    onGap: (reason: Error) => void
    redisCa: CurrentCa | undefined
    /** The data directory of the hub, in which each of several workers has its own. */
    dataDirOfHub: string
  },
) {
  // Makes sure first that no other node runs in this data directory. Otherwise, on Redis, `join` would remove the
  // membership of that node.
  await checkSocketPath(socketPathIn(config.dataDir))
  let imported: ImportOutcome | undefined
  const opened = await openStore(config, name, log, {
    onGap: of.onGap,
    redisCa: of.redisCa,
    async prepare(store) {
      const isNew = await migrate(store, () => nodesOf(store, config.dataDir))
      imported = await importWaiting(store, config.dataDir, log)
      await warnOfLeftBehind(store, of.dataDirOfHub, log)
      return isNew || imported !== undefined
    },
  })
  return {
    ...opened,
    imported,
    async join(isUrgent?: () => boolean) {
      await opened.join(isUrgent)
      // The order matters. A joining node registers itself, then looks for a mark. An import stores its mark, then
      // looks for nodes. So at least one of the two sees the other.
      if (await isImporting(opened.store)) throw new Error('another node has begun to take in an export')
    },
  }
}
