import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { codeOf } from '../../telemetry/reason.ts'
import { keysBelow } from '../stored-value.ts'
import { type Mended, openMended, skipNumbers } from './repair.ts'
import { checkTables, uncheckedPrefixes } from './table.ts'

/**
 * Opens the LevelDB database in a directory, or rejects with a readable reason. With `onDamaged`, repairs a damaged
 * database, or replaces it by an empty one if nothing can be saved.
 */
export async function openDirectory(
  directory: string,
  onDamaged?: (damage: Damage) => void,
): Promise<ClassicLevel<string, Buffer>> {
  try {
    return await (onDamaged ? openOrMend(directory, onDamaged) : openLevel(directory, false))
  } catch (error) {
    throw openFailure(directory, error)
  }
}

/** The damage to a store, and the outcome of its repair. */
export type Damage =
  | Mended
  /** LevelDB left out an unreadable part of its log, such as the end after a power failure. */
  | { outcome: 'cut'; bytes: number }

async function openOrMend(
  directory: string,
  onDamaged: (damage: Damage) => void,
): Promise<ClassicLevel<string, Buffer>> {
  const { db, mended } = await openMended(directory, {
    async suspect() {
      await checkFiles(directory)
      await checkTables(directory)
      return openLevel(directory, true)
    },
    mended: () => openLevel(directory, false),
  })
  const bytes = mended ? 0 : await droppedBytes(directory)
  if (mended) onDamaged(mended)
  else if (bytes > 0) {
    // What LevelDB has left out may lie before later records.
    await skipNumbers(db)
    onDamaged({ outcome: 'cut', bytes })
  }
  return db
}

/** Bytes: docs/decisions, "LevelDB sorts large pieces". */
const sizes = { blockSize: 16 * 1024, writeBufferSize: 16 * 1024 * 1024 }

async function openLevel(directory: string, readAll: boolean): Promise<ClassicLevel<string, Buffer>> {
  await readLogs(directory)
  const encodings = { keyEncoding: 'utf8', valueEncoding: 'buffer' } as const
  const db = new ClassicLevel<string, Buffer>(directory, { ...encodings, ...sizes })
  await db.open()
  try {
    if (readAll) await readThrough(db)
  } catch (error) {
    await db.close()
    throw error
  }
  return db
}

/**
 * Rejects if a log cannot be read, for example without permission, or because no more files can be opened. LevelDB would
 * open the store without that log, and delete it.
 */
async function readLogs(directory: string): Promise<void> {
  const names: string[] = await readdir(directory).catch(() => [])
  for (const name of names) if (name.endsWith('.log')) await readFile(join(directory, name))
}

/** Reads the entries, because LevelDB finds damage only when it reads. Skips keys below `uncheckedPrefixes`. */
async function readThrough(db: ClassicLevel<string, Buffer>): Promise<void> {
  let gte = ''
  for (const prefix of uncheckedPrefixes) {
    for await (const _ of pagesOf(db, { gte, lt: prefix }));
    gte = keysBelow(prefix).lt
  }
  for await (const _ of pagesOf(db, { gte }));
}

/** Opens the database again. If this has changed stored values, restores them from `former`. */
export async function reopen(
  db: ClassicLevel<string, Buffer>,
  former: ReadonlyMap<string, Buffer | undefined>,
): Promise<void> {
  await db.close()
  await readLogs(db.location)
  // A directory that is gone is no empty store.
  await db.open({ createIfMissing: false })
  const present = await db.getMany([...former.keys()])
  const batch = db.batch()
  for (const [index, [key, stored]] of [...former].entries()) {
    const now = present[index]
    if (stored === undefined && now !== undefined) batch.del(key)
    if (stored !== undefined && !(now?.equals(stored) ?? false)) batch.put(key, stored)
  }
  // Without a change, nothing is written: a store on a full disk can still be read.
  await (batch.length > 0 ? batch.write({ sync: true }) : batch.close())
}

/** Makes a function that reads. It repeats a read that failed because a write has reopened the database meanwhile. */
export function createRepeatedReads(reopening: () => Promise<void> | undefined) {
  return async <Result>(read: () => Promise<Result>): Promise<Result> => {
    for (;;) {
      const before = reopening()
      await before
      try {
        return await read()
      } catch (error) {
        if (reopening() === before) throw error
      }
    }
  }
}

/** Yields a range page by page: awaiting each entry would take most of the time. */
export async function* pagesOf(
  db: ClassicLevel<string, Buffer>,
  range: { gte?: string; lt?: string; limit?: number },
) {
  const entries = db.iterator({ ...range, highWaterMarkBytes: pageSize.bytes })
  try {
    // The first page has one entry, because some callers need only one.
    for (let count = 1; ; count = pageSize.entries) {
      const page = await entries.nextv(count)
      if (page.length === 0) return
      yield page
    }
  } finally {
    await entries.close()
  }
}

const pageSize = { entries: 1_000, bytes: 128 * 1024 }

/**
 * Counts the bytes of `*.log` that LevelDB left out at the opening. LevelDB reports these bytes only in its text file
 * `LOG`.
 */
async function droppedBytes(directory: string): Promise<number> {
  const text = await readFile(join(directory, 'LOG'), 'utf8').catch(() => '')
  const drops = [...text.matchAll(/\.log: dropping (\d+) bytes/g)]
  return drops.reduce((sum, [, bytes]) => sum + Number(bytes), 0)
}

/**
 * Rejects a store that lacks files. LevelDB would open it: without CURRENT it deletes the other files, without the log it
 * goes on and says nothing. The first opening, which a crash may interrupt, makes CURRENT before the log, and no second manifest.
 */
async function checkFiles(directory: string): Promise<void> {
  const names: string[] = await readdir(directory).catch(() => [])
  const hasLog = names.some((name) => name.endsWith('.log'))
  const isNew = !hasLog && !names.some((name) => /\.ldb$|^MANIFEST-(?!000001$)/.test(name))
  if (isNew) return
  if (!names.includes('CURRENT')) throw new Error('Corruption: CURRENT file is missing')
  const current = await readFile(join(directory, 'CURRENT'), 'utf8')
  if (!/^MANIFEST-\d+\n$/.test(current)) throw new Error('Corruption: CURRENT names no manifest')
  if (!hasLog) throw new Error('Corruption: the log is missing')
}

function openFailure(directory: string, error: unknown): Error {
  if (error instanceof Error && error.message.startsWith('the store in ')) return error
  const cause = error instanceof Error ? (error.cause ?? error) : error
  if (codeOf(cause) === 'LEVEL_LOCKED')
    return new Error(`the store in ${directory} is in use by another process`)
  return new Error(`the store in ${directory} cannot be opened`, { cause })
}
