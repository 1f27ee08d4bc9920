import { access, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type Change,
  ConditionFailed,
  type Dumpable,
  type Store,
  type StoredRecord,
} from '../../store/store.ts'
import { counterKey, formatKey } from '../../store/stored-value.ts'
import type { Log } from '../../telemetry/log.ts'
import { addAuditLines, auditPrefix, syncDirectory } from '../audit.ts'
import { contentOf } from './content.ts'
import { lastNumberIn } from './exporting.ts'
import { type About, checkFile, readFile, UnusableFile } from './file.ts'
import { lastKey, markKey } from './mark.ts'

/** An export with this name in the data directory is taken in at the next start of the node. */
export const waitingName = 'import'
/** A file that was not taken in is called this from then on. */
const refusedName = 'import.refused'
/** Changes of one commit, about, and bytes of what they store. */
const portionSize = { changes: 2_000, bytes: 1024 * 1024 }
/** Records between two lines of the log. */
const linesEvery = 100_000

/** What became of the file that waited. */
export type Outcome = { done: About } | { refused: string }

/**
 * Takes in the export that waits in the data directory, before anything else reads the store. A mark is stored first,
 * and goes in the commit of the last records. So a store with a mark is never used: after a crash the next start begins
 * again, with what is there wiped away. Resolves with undefined where no file waits. Rejects where a mark has no file.
 */
export async function importWaiting(
  store: Store & Dumpable,
  dataDir: string,
  log: Log,
): Promise<Outcome | undefined> {
  const path = join(dataDir, waitingName)
  const isThere = await access(path).then(
    () => true,
    () => false,
  )
  const mark = (await store.get(markKey))?.toString()
  if (!isThere && mark === undefined) return undefined
  if (!isThere) {
    throw new Error(
      `an import into this store has not finished (checksum ${mark}): start the node that has the file, or put that file at ${path}, or empty the store`,
    )
  }
  try {
    const about = await checkFile(path)
    if ((await store.get(lastKey))?.toString().endsWith(about.sha256)) {
      // A crash came between the last commit and the removal of the file.
      await remove(path, dataDir)
      return { done: about }
    }
    if (mark === undefined) await claim(store, about, dataDir)
    else if (mark !== about.sha256) {
      throw new Error(
        `another import has begun (checksum ${mark}): put its file at ${path}, or empty the store`,
      )
    }
    log.info({ records: about.records, exportedAt: about.at, from: about.from }, 'taking in an export')
    await takeIn({ store, path, dataDir, about, log })
    await remove(path, dataDir)
    log.info({ records: about.records }, 'the export is taken in')
    return { done: about }
  } catch (error) {
    if (mark !== undefined || !(error instanceof UnusableFile)) throw error
    await rename(path, join(dataDir, refusedName))
    log.error({ reason: error.message, movedTo: refusedName }, 'the export is not taken in')
    return { refused: error.message }
  }
}

/** From now on the store is being imported. Throws `UnusableFile` where it is in use. */
async function claim(store: Store, { sha256 }: About, dataDir: string): Promise<void> {
  const content = await contentOf(store, dataDir)
  if (content.length > 0) throw new UnusableFile(`the store is not empty: it has ${content.join(', ')}`)
  try {
    await store.commit([{ put: markKey, value: sha256, when: 'absent' }])
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error
    throw new UnusableFile('another node has begun to take in an export')
  }
}

async function takeIn(of: {
  store: Store & Dumpable
  path: string
  dataDir: string
  about: About
  log: Log
}): Promise<void> {
  const { store, path, dataDir, about, log } = of
  const portions = createPortions(store, { check: markKey, when: { value: about.sha256 } })
  for await (const page of store.dump()) {
    // Of what this removes, a dump of Redis tells as well.
    for (const { key, value } of page) if (value && !isKept(key)) await portions.add({ del: key })
  }
  const auditLines: string[] = []
  let number = 0
  let done = 0
  for await (const page of readFile(path)) {
    for (const record of page) {
      if (++done % linesEvery === 0) log.info({ done, of: about.records }, 'taking in an export')
      const given = lastNumberIn(record)
      number = given ?? number
      if (given !== undefined || record.key === formatKey) continue
      if (!store.isShared && record.key.startsWith(auditPrefix)) auditLines.push(String(record.value))
      else await portions.add(changeOf(record))
    }
  }
  await portions.flush()
  if (auditLines.length > 0) await addAuditLines(join(dataDir, 'audit.log'), auditLines)
  // The numbers that the commit takes raise the counter to that of the export: no position is given twice.
  const missing = number - (await store.lastNumber())
  const last = { put: lastKey, value: about.sha256 }
  await store.commit([
    missing > 0 ? { ...last, numbered: { nth: missing - 1, at: 'value' } } : last,
    { del: markKey, when: { value: about.sha256 } },
  ])
}

/** What an empty store keeps when an export comes in: what the nodes are told by, and who imported it. */
function isKept(key: string): boolean {
  return (
    [markKey, formatKey, counterKey].includes(key) || key.startsWith('member/') || key.startsWith(auditPrefix)
  )
}

/** The record replaces what is there, whatever their event times are. */
function changeOf({ key, value, time }: StoredRecord): Change {
  if (value === undefined) return { del: key }
  return { put: key, value, order: time === undefined ? undefined : { time, horizon: -Infinity } }
}

/** Stores changes in portions, each only while `held` holds. */
function createPortions(store: Store, held: Change) {
  let changes: Change[] = []
  let bytes = 0

  return {
    async add(change: Change): Promise<void> {
      changes.push(change)
      if ('value' in change) bytes += change.value.length
      if (changes.length >= portionSize.changes || bytes >= portionSize.bytes) await flush()
    },
    flush,
  }

  async function flush(): Promise<void> {
    if (changes.length > 0) await store.commit([held, ...changes])
    changes = []
    bytes = 0
  }
}

async function remove(path: string, dataDir: string): Promise<void> {
  await rm(path, { force: true })
  await syncDirectory(dataDir)
}
