import { isOfNodes } from '../../store/records.ts'
import type { Dumpable, Store, StoredRecord } from '../../store/store.ts'
import { auditPrefix, ownAuditFile, readAuditLines } from '../audit.ts'
import { linesOf } from './export-file.ts'
import { isImporting } from './import-mark.ts'

/**
 * The lines of an export: the whole store at one moment, with everything acknowledged before the call. The hub keeps
 * running.
 */
export async function* exported(parts: {
  store: Store & Dumpable
  release: string
  clock: () => number
  dataDir: string
}) {
  const { store, release, clock, dataDir } = parts
  if (await isImporting(store)) throw new Error('an import into this store has not finished')
  const at = new Date(clock()).toISOString()
  yield* linesOf({ release, at, from: store.driver }, records())

  async function* records(): AsyncGenerator<StoredRecord[]> {
    for await (const page of store.dump()) {
      yield page.filter(({ key }) => !isOfNodes(key))
    }
    const auditFile = ownAuditFile(store, dataDir)
    if (auditFile === undefined) return
    // Keys as in a shared audit log. The number keeps lines of the same moment in order.
    let nth = 0
    for await (const lines of readAuditLines(auditFile)) {
      yield lines.map((line) => ({
        key: `${auditPrefix}${JSON.parse(line).at} ${String(nth++).padStart(8, '0')}`,
        value: Buffer.from(line),
      }))
    }
  }
}
