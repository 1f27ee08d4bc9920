import { access, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { version } from '../../config/version.ts'
import type { Dumpable, Store } from '../../store/store.ts'
import { type Audit, syncDirectory } from '../audit.ts'
import type { Commands } from '../operations/perform.ts'
import { refusal } from '../refusal.ts'
import { exported } from './exporting.ts'
import { isImporting, lastImport } from './import-mark.ts'
import { type Outcome, waitingName } from './importing.ts'
import { contentOf } from './stored-content.ts'

/** `hubctl import` puts the file under this name in the data directory, before it asks for the import. */
export const offeredName = 'import.offered'

/**
 * Commands that only the admin socket offers: an export holds password hashes and signing keys, and a user who may open
 * the socket can read them in the data directory anyway.
 */
export function createBackupCommands(parts: {
  store: Store & Dumpable
  dataDir: string
  audit: Pick<Audit, 'record'>
  clock: () => number
  /** Id of this start of the node: every start has another one. */
  run: string
  /** The outcome of the export that waited for this start. */
  imported: Outcome | undefined
  /** Closes the node and starts it again. Undefined: this process does not restart its node. */
  restart: (() => void) | undefined
}): Commands {
  const { store, dataDir, audit, clock, run, imported, restart } = parts
  return {
    /** Answers with the lines of an export. */
    async export(_args, who) {
      if (await isImporting(store)) throw refusal('an import into this store has not finished')
      await audit.record({ who, action: 'export', target: store.driver, detail: null })
      return exported({ store, dataDir, release: version, clock })
    },

    /** The next start imports the offered file. The node restarts after it has answered, if it can. */
    async import(_args, who) {
      const offered = join(dataDir, offeredName)
      await access(offered).catch(() => {
        throw refusal(`there is no file ${offered} on the machine of the node: run hubctl import there`)
      })
      const content = await contentOf(store, dataDir)
      if (content.length > 0) throw refusal(`the store is not empty: it has ${content.join(', ')}`)
      await audit.record({ who, action: 'import', target: store.driver, detail: null })
      await rename(offered, join(dataDir, waitingName))
      await syncDirectory(dataDir)
      if (restart) setImmediate(restart)
      return { run, waits: restart === undefined }
    },

    /** The outcome of the export that waited for this start. `last` is the checksum of the last import into this store. */
    'import.outcome': async () => ({ run, ...imported, last: await lastImport(store) }),
  }
}
