import type { Dumpable, Store, StoredRecord } from '../../store/store.ts'
import { auditPrefix, ownAuditFile, readAuditLines } from '../audit.ts'
import { isOfNodes, linesOf } from './export-file.ts'
import { isImporting } from './import-mark.ts'

/**
 * The lines of an export of the whole store, as it was at one moment. The hub keeps running. The export has everything
 * that was acknowledged before the call.
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
    // Makes keys like those of a shared audit log. A number in the key keeps lines of the same moment in their order.
    let nth = 0
    for await (const lines of readAuditLines(auditFile)) {
      yield lines.map((line) => ({
        key: `${auditPrefix}${JSON.parse(line).at} ${String(nth++).padStart(8, '0')}`,
        value: Buffer.from(line),
      }))
    }
  }
}
