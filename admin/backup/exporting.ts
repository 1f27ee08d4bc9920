import type { Dumpable, Store, StoredRecord } from '../../store/store.ts'
import { auditPrefix } from '../audit.ts'
import { isOfNodes, linesOf } from './export-file.ts'
import { isImporting } from './import-mark.ts'

/**
 * The lines of an export of the whole store, as it was at one moment. The hub goes on meanwhile. The export has everything
 * that was acknowledged before the call.
 */
export async function* exported(parts: {
  store: Store & Dumpable
  release: string
  clock: () => number
  /** The lines of the audit log, where the store does not hold them. */
  auditLines: () => Promise<readonly string[]>
}) {
  const { store, release, clock } = parts
  if (await isImporting(store)) throw new Error('an import into this store has not finished')
  const at = new Date(clock()).toISOString()
  yield* linesOf({ release, at, from: store.driver }, records())

  async function* records(): AsyncGenerator<StoredRecord[]> {
    for await (const page of store.dump()) {
      yield page.filter(({ key }) => !isOfNodes(key))
    }
    if (store.isShared) return
    // As several nodes keep it. The number makes keys of the same moment differ, and sort as the lines do.
    const lines = await parts.auditLines()
    yield lines.map((line, nth) => ({
      key: `${auditPrefix}${JSON.parse(line).at} ${String(nth).padStart(8, '0')}`,
      value: Buffer.from(line),
    }))
  }
}
