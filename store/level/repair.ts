import { constants, existsSync } from 'node:fs'
import { chmod, cp, readdir, readFile, rename, rm, rmdir, stat, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { sync } from '../../config/sync.ts'
import { reasonOf } from '../../telemetry/reason.ts'
import { contentOf, counterKey, encode, formatKey } from '../stored-value.ts'
import { markDamagedBlocks } from './table.ts'

/** The note that an empty store has replaced a damaged one; kept until `acceptReplacement`. */
export interface Replacement {
  at: string
  /** Path of the damaged store. */
  movedTo: string
  /** Why the damaged store could not be repaired. */
  reason: string
}

/** The damage that was found in a store, and the outcome of its repair. */
export type Mended = Mending & { error: unknown }

type Mending =
  | { outcome: 'repaired'; movedTo: string; entries: number }
  | ({ outcome: 'replaced' } & Replacement)

/*
 * What a repair makes beside the directory of a store, by the end of the path:
 * - `.repairing`: the copy that LevelDB repairs
 * - `.repaired`: the repaired copy, before it replaces the store
 * - `.damaged-<time>`: the damaged store, which is kept
 * - `.replaced`: the note that an empty store has replaced the damaged one
 *
 * After a crash between any two steps, the next start finishes the repair or removes the copies.
 */

/**
 * Opens a store with `suspect`, which rejects if the store is damaged. Then repairs the store, and opens it with
 * `mended`. First of all, finishes a repair that a crash interrupted.
 */
export async function openMended<Db>(
  directory: string,
  open: { suspect(): Promise<Db>; mended(): Promise<Db> },
): Promise<{ db: Db; mended?: Mended }> {
  await finishMending(directory)
  try {
    return { db: await open.suspect() }
  } catch (error) {
    if (!isDamage(error)) throw error
    const mending = await mend(directory)
    return { db: await open.mended(), mended: { ...mending, error } }
  }
}

async function finishMending(directory: string): Promise<void> {
  await rm(`${directory}.repairing`, { recursive: true, force: true })
  if (!existsSync(`${directory}.repaired`)) return
  // Empty or missing: the crash came after `mend` had renamed the damaged store.
  const isMovedAside = (await readdir(directory).catch(() => [])).length === 0
  if (!isMovedAside) return rm(`${directory}.repaired`, { recursive: true, force: true })
  await rmdir(directory).catch(() => undefined)
  await rename(`${directory}.repaired`, directory)
  await sync(dirname(directory))
}

/**
 * Replaces a damaged store by a repaired copy. If nothing can be saved, leaves no directory: LevelDB then makes an
 * empty store. Rejects if a copy has no room, because with more room the repair may succeed.
 */
async function mend(directory: string): Promise<Mending> {
  const at = new Date().toISOString()
  const movedTo = `${directory}.damaged-${at.replace(/[:.]/g, '-')}`
  const saved = await repairedCopy(directory)
  if ('entries' in saved) {
    await rename(directory, movedTo)
    await rename(`${directory}.repaired`, directory)
    await sync(dirname(directory))
    return { outcome: 'repaired', movedTo, entries: saved.entries }
  }
  const replacement = { at, movedTo, reason: saved.reason }
  // Writes the note before the rename. In the other order, a crash in between could leave no note. The node would then
  // start with an empty store, and look healthy.
  await writeNote(directory, replacement)
  await rename(directory, movedTo)
  await sync(dirname(directory))
  return { outcome: 'replaced', ...replacement }
}

/** Whether the content of the store is damaged. A full disk or a locked directory is no damage. */
function isDamage(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ('code' in cause && cause.code === 'LEVEL_CORRUPTION') return true
    if (cause.message.startsWith('Corruption')) return true
    if (brokenFile.test(cause.message)) return true
  }
  return false
}

const brokenFile =
  /^IO error: .*(MANIFEST-\d+|\d+\.(ldb|sst|log)): (No such file or directory|Invalid argument)$/

/** Reads the note of a replacement. Undefined: there is none. */
export async function replacementOf(directory: string): Promise<Replacement | undefined> {
  const text = await readFile(`${directory}.replaced`, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
  try {
    const { at, movedTo, reason } = JSON.parse(text)
    return { at: String(at), movedTo: String(movedTo), reason: String(reason) }
  } catch {
    // Even an unreadable note says that the store was replaced.
    return { at: 'unknown', movedTo: 'unknown', reason: 'unknown' }
  }
}

/** Removes the note of a replacement when an operator accepts the store. */
export async function acceptReplacement(directory: string): Promise<void> {
  await rm(`${directory}.replaced`, { force: true })
  await sync(dirname(directory))
}

/** Lets LevelDB repair a copy of the store, and moves the copy to `.repaired`. Resolves with a reason if that fails. */
async function repairedCopy(directory: string): Promise<{ entries: number } | { reason: string }> {
  const copy = `${directory}.repairing`
  await makeRoom(directory)
  try {
    await rm(copy, { recursive: true, force: true })
    await rm(`${directory}.repaired`, { recursive: true, force: true })
    // Where the file system can share blocks, the copy costs almost nothing.
    await cp(directory, copy, { recursive: true, mode: constants.COPYFILE_FICLONE })
    await chmod(copy, 0o700)
    await markDamagedBlocks(copy)
    await ClassicLevel.repair(copy)
    const entries = await countEntries(copy)
    if (entries === 0) return await given('nothing readable was left in it')
    // LevelDB's repair moves files to `lost`; the damaged store still has these files.
    await rm(join(copy, 'lost'), { recursive: true, force: true })
    for (const name of await readdir(copy)) await sync(join(copy, name))
    await sync(copy)
    await rename(copy, `${directory}.repaired`)
    await sync(dirname(directory))
    return { entries }
  } catch (error) {
    if (isFull(error)) throw noRoom(directory, error)
    return given(reasonOf(error))
  }

  async function given(reason: string): Promise<{ reason: string }> {
    await rm(copy, { recursive: true, force: true })
    return { reason }
  }
}

/**
 * Counts the entries of a repaired store. Reads all of them, because LevelDB's repair does not report its result.
 */
async function countEntries(directory: string): Promise<number> {
  const db = new ClassicLevel<string, Buffer>(directory, { keyEncoding: 'utf8', valueEncoding: 'buffer' })
  await db.open()
  try {
    let entries = 0
    let used = 0
    for await (const [key, stored] of db.iterator()) {
      // Keys are paths or in `own`, and values begin with 8 bytes of event time.
      const isKnown = own.includes(key) || (key.includes('/') && !key.includes('\uFFFD'))
      if (!isKnown || stored.length < 8) throw new Error('what is left is no store of the hub')
      if (/^journal\/\d{16}$/.test(key)) used = Number(key.slice('journal/'.length))
      entries++
    }
    await skipNumbers(db, used)
    return entries
  } finally {
    await db.close()
  }
}

/**
 * Sets the counter of numbers (`Numbered`) of a store that has lost records far ahead. Sessions may remember numbers of
 * lost messages, and no number must be used twice. `used`: a number that was used.
 */
export async function skipNumbers(db: ClassicLevel<string, Buffer>, used = 0): Promise<void> {
  const counter = await db.get(counterKey)
  const number = Math.max(used, Number(counter ? contentOf(counter).toString() : 0))
  if (number > 0) await db.put(counterKey, encode(NaN, String(number + skipped)), { sync: true })
}

/** No store ever has as many messages. */
const skipped = 1_000_000_000

/** The keys of the store that are no paths. */
const own: readonly string[] = [counterKey, formatKey]

/** Rejects if the disk is too full: LevelDB's repair would leave out entries without an error. */
async function makeRoom(directory: string): Promise<void> {
  const names = await readdir(directory, { recursive: true })
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(directory, name))).size))
  const needed = 2 * sizes.reduce((sum, size) => sum + size, 0) + 16 * 1024 * 1024
  const { bavail, bsize } = await statfs(directory)
  if (bavail * bsize < needed) {
    throw noRoom(directory, new Error(`${needed} bytes are needed, ${bavail * bsize} are free`))
  }
}

function noRoom(directory: string, cause: unknown): Error {
  return new Error(`the store in ${directory} is damaged, and there is no room to repair a copy of it`, {
    cause,
  })
}

function isFull(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ('code' in cause && (cause.code === 'ENOSPC' || cause.code === 'EDQUOT')) return true
    if (/No space left on device|Disk quota exceeded/.test(cause.message)) return true
  }
  return false
}

async function writeNote(directory: string, replacement: Replacement): Promise<void> {
  const draft = `${directory}.replaced.new`
  await writeFile(draft, `${JSON.stringify(replacement)}\n`, { mode: 0o600 })
  await sync(draft)
  await rename(draft, `${directory}.replaced`)
  await sync(dirname(directory))
}
