import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { sync } from '../../config/sync.ts'
import { families, prefixOf } from '../../store/keys.ts'
import {
  type Change,
  ConditionFailed,
  type Dumpable,
  type Store,
  type StoredRecord,
} from '../../store/store.ts'
import { counterKey, formatKey } from '../../store/stored-value.ts'
import type { Log } from '../../telemetry/log.ts'
import { addAuditLines, auditPrefix, ownAuditFile } from '../audit.ts'
import { type About, checkFile, readFile, UnusableFile } from './export-file.ts'
import { checksumOf, lastImport, lastKey, markKey } from './import-mark.ts'
import { contentOf, nodesOf } from './stored-content.ts'

/** Name in the data directory of an export that the next start imports. */
export const waitingName = 'import'
/** New name of a file whose import was refused. */
const refusedName = 'import.refused'
/** A commit holds about this many changes, or bytes of values. */
const portionSize = { changes: 2_000, bytes: 1024 * 1024 }
/** Number of records between two log lines about the progress. */
const linesEvery = 100_000

/** The outcome of the import of an export that waited. */
export type ImportOutcome = { done: About } | { refused: string }

/**
 * Imports the export that waits in the data directory, before anything else reads the store. A crash cannot leave half
 * an import: docs/decisions, "An import happens at a start, and all of it or nothing". Resolves with undefined if no
 * file waits. Rejects if the store has the mark of an import whose file is missing or replaced.
 */
export async function importWaiting(
  store: Store & Dumpable,
  dataDir: string,
  log: Log,
): Promise<ImportOutcome | undefined> {
  const path = join(dataDir, waitingName)
  const isThere = existsSync(path)
  const mark = (await store.get(markKey))?.toString()
  if (!isThere && mark === undefined) return undefined
  if (!isThere) {
    throw new Error(
      `an import into this store has not finished (checksum ${checksumOf(mark)}): start the node that has the file, or put that file at ${path}, or empty the store`,
    )
  }
  let begun: { about: About; own: string } | undefined
  try {
    const about = await checkFile(path)
    if ((await lastImport(store)) === about.sha256) {
      // This file was imported before: the node crashed before the removal, or the file was offered again.
      await remove(path, dataDir)
      log.info({ records: about.records }, 'the export was taken in before')
      return { done: about }
    }
    begun = { about, own: await placeMark(store, about, { mark, dataDir, path }) }
  } catch (error) {
    if (!(error instanceof UnusableFile)) throw error
    if (mark !== undefined) {
      const need = `an import into this store has not finished (checksum ${checksumOf(mark)})`
      throw new Error(`${need}, and ${path} is not its file: put that one there, or empty the store`, {
        cause: error,
      })
    }
    await rename(path, join(dataDir, refusedName))
    log.error({ reason: error.message, movedTo: refusedName }, 'the export is not taken in')
    return { refused: error.message }
  }
  // The mark is stored: no node uses the store until an import is complete.
  const { about, own } = begun
  log.info({ records: about.records, exportedAt: about.at, from: about.from }, 'taking in an export')
  await takeIn({ store, path, dataDir, about, own, log })
  await remove(path, dataDir)
  log.info({ records: about.records }, 'the export is taken in')
  return { done: about }
}

/**
 * Stores the mark of this start of the node, and resolves with the mark. If an import of an earlier start still runs,
 * the new mark makes its commits fail. Throws `UnusableFile` if the present mark belongs to another file. Without a
 * mark, throws `UnusableFile` if the store has data, or if other nodes use it.
 */
async function placeMark(
  store: Store,
  { sha256 }: About,
  { mark, dataDir, path }: { mark: string | undefined; dataDir: string; path: string },
): Promise<string> {
  const own = `${randomUUID()} ${sha256}`
  if (mark === undefined) {
    const content = await contentOf(store, dataDir)
    if (content.length > 0) throw new UnusableFile(`the store is not empty: it has ${content.join(', ')}`)
  } else if (checksumOf(mark) !== sha256) {
    throw new UnusableFile(`${path} has the checksum ${sha256}`)
  }
  try {
    await store.commit([{ put: markKey, value: own, when: mark === undefined ? 'absent' : { value: mark } }])
  } catch (error) {
    if (!(error instanceof ConditionFailed)) throw error
    throw new Error('another node takes in an export')
  }
  // The order matters. An import stores its mark, then looks for nodes. A joining node registers itself, then looks for
  // a mark. So at least one of the two sees the other.
  const others = await nodesOf(store, dataDir)
  if (others.length === 0) return own
  const reason = `nodes use the store (${others.join(', ')})`
  if (mark !== undefined) throw new Error(`${reason}: stop them; where there are none, empty the store`)
  await store.commit([{ del: markKey, when: { value: own } }])
  throw new UnusableFile(reason)
}

async function takeIn(of: {
  store: Store & Dumpable
  path: string
  dataDir: string
  about: About
  /** The mark of this start of the node. */
  own: string
  log: Log
}): Promise<void> {
  const { store, path, dataDir, about, own, log } = of
  const portions = createPortions(store, { check: markKey, when: { value: own } })
  for await (const page of store.dump()) {
    // A dump of Redis also yields the deletions that this loop makes. They are records without a value: the loop skips
    // them.
    for (const { key, value } of page) if (value && !isKept(key)) await portions.add({ del: key })
  }
  const auditFile = ownAuditFile(store, dataDir)
  const auditLines: string[] = []
  let done = 0
  const pages = readFile(path)
  for (;;) {
    const page = await pages.next()
    if (page.done) {
      if (page.value.sha256 === about.sha256) break
      throw new Error(`${path} was changed while it was read`)
    }
    for (const record of page.value) {
      if (++done % linesEvery === 0) log.info({ done, of: about.records }, 'taking in an export')
      if (record.key === counterKey || record.key === formatKey) continue
      if (auditFile !== undefined && record.key.startsWith(auditPrefix)) auditLines.push(String(record.value))
      else await portions.add(changeOf(record))
    }
  }
  await portions.flush()
  if (auditFile !== undefined && auditLines.length > 0) await addAuditLines(auditFile, auditLines)
  // This commit raises the position counter to that of the export, so that no position is given out twice.
  const missing = about.lastPosition - (await store.lastNumber())
  const last = { put: lastKey, value: about.sha256 }
  await store.commit([
    missing > 0 ? { ...last, numbered: { nth: missing - 1, at: 'value' } } : last,
    { del: markKey, when: { value: own } },
  ])
}

/** Whether an import keeps this key when it empties the store. */
function isKept(key: string): boolean {
  return key === markKey || families.get(prefixOf(key))?.isKeptByImport === true
}

/** The change that stores a record, even over an entry with a newer event time. */
function changeOf({ key, value, time }: StoredRecord): Change {
  if (value === undefined) return { del: key }
  return { put: key, value, order: time === undefined ? undefined : { time, horizon: -Infinity } }
}

/** Stores changes in portions. `held`: condition of each commit. */
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
  await sync(dataDir)
}
