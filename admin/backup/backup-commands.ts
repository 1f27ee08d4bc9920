import { access, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { sync } from '../../config/sync.ts'
import { version } from '../../config/version.ts'
import { refusal } from '../../operations/errors.ts'
import type { Commands } from '../../operations/perform.ts'
import type { Dumpable, Store } from '../../store/store.ts'
import type { Audit } from '../audit.ts'
import { exported } from './exporting.ts'
import { isImporting, lastImport } from './import-mark.ts'
import { type ImportOutcome, waitingName } from './importing.ts'
import { contentOf } from './stored-content.ts'

/** Name of the file that `hubctl import` puts into the data directory for the command `import`. */
export const offeredName = 'import.offered'

/**
 * Commands of the admin socket, and of no other door: an export holds password hashes and signing keys
 * (docs/decisions, "Exports pass no network").
 */
export function createBackupCommands(parts: {
  store: Store & Dumpable
  dataDir: string
  audit: Pick<Audit, 'change'>
  clock: () => number
  /** Id of this start of the node. Each start has a new id. */
  run: string
  /** Outcome of the import at this start. Undefined: no export waited. */
  imported: ImportOutcome | undefined
  /** The hub has several workers (`HUB_WORKERS`): while one takes in an export, no other one may use the store. */
  hasWorkers: boolean
  /** Closes the node and starts it again. Undefined: this process does not restart its node. */
  restart: ((reason: 'import') => void) | undefined
}): Commands {
  const { store, dataDir, audit, clock, run, imported, hasWorkers, restart } = parts
  return {
    /** Answers with the lines of an export. */
    async export(_args, who) {
      if (await isImporting(store)) throw refusal('an import into this store has not finished')
      return audit.change(who, 'export', async (first) => {
        await first(store.driver, null)
        return exported({ store, dataDir, release: version, clock })
      })
    },

    /** Makes the next start of the node import the offered file. With `restart`, the node restarts after the answer. */
    async import(_args, who) {
      if (hasWorkers) {
        const reason = 'a hub with several workers (HUB_WORKERS) takes in an export at its start only'
        throw refusal(`${reason}: stop it, run hubctl import FILE --stopped, and start it`)
      }
      const offered = join(dataDir, offeredName)
      await access(offered).catch(() => {
        throw refusal(`there is no file ${offered} on the machine of the node: run hubctl import there`)
      })
      const content = await contentOf(store, dataDir)
      if (content.length > 0) throw refusal(`the store is not empty: it has ${content.join(', ')}`)
      await audit.change(who, 'import', async (first) => {
        await first(store.driver, null)
        await rename(offered, join(dataDir, waitingName))
        await sync(dataDir)
      })
      if (restart) setImmediate(restart, 'import')
      return { run, waits: restart === undefined }
    },

    /**
     * Answers with the outcome of the import at this start, if there was one. `last`: checksum of the last export that
     * was imported into this store.
     */
    'import.outcome': async () => ({ run, ...imported, last: await lastImport(store) }),
  }
}
