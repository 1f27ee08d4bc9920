import { readdir, rename } from 'node:fs/promises'
import { Level } from 'level'
import { type Change, keepsStored, type Store } from './store.ts'

/**
 * The embedded driver: LevelDB in one directory, one process per directory.
 *
 * Waiting commits are written together as one synced batch (group commit), so that the cost of the
 * disk is shared under load and an acknowledgement still means "on disk".
 * Rejects with a readable reason when the directory cannot be opened. With `onDamaged` a directory whose
 * content cannot be read is moved aside instead, and an empty store takes its place.
 */
export async function openEmbeddedStore(
  directory: string,
  onDamaged?: (movedTo: string, error: unknown) => void,
): Promise<Store> {
  const db = await openOrReplace(directory, onDamaged).catch((error: unknown) => {
    throw openFailure(directory, error)
  })
  const waiting: Pending[] = []
  let writing: Promise<void> | undefined
  let torn = false
  let reopening: Promise<void> | undefined
  let closed = false

  return {
    driver: 'embedded',

    async get(key) {
      await reopening
      const stored = await db.get(key)
      return stored === undefined ? undefined : contentOf(stored)
    },

    async *range(prefix) {
      await reopening
      for await (const [key, stored] of db.iterator(keysBelow(prefix))) yield [key, contentOf(stored)]
    },

    commit(changes) {
      if (closed) return Promise.reject(new Error('the store is closed'))
      if (changes.length === 0) return Promise.resolve()
      return new Promise((resolve, reject) => {
        waiting.push({ changes, resolve, reject })
        writing ??= writeWaiting()
      })
    },

    async close() {
      closed = true
      await writing
      await db.close()
    },
  }

  async function writeWaiting(): Promise<void> {
    // One turn of the event loop, so that everything received in one go shares the first batch.
    await new Promise((resolve) => setImmediate(resolve))
    while (waiting.length > 0) {
      const group = takeGroup(waiting)
      try {
        if (torn) {
          reopening = reopen()
          await reopening
        }
        const changes = group.flatMap((pending) => pending.changes)
        await db.batch(await applicable(changes), { sync: true })
        for (const pending of group) pending.resolve()
      } catch (error) {
        torn = true
        for (const pending of group) pending.reject(error)
      }
    }
    // In the same turn as the last look at `waiting`: a commit made from now on starts a new round.
    writing = undefined
  }

  /**
   * A write that failed half-way (full disk) leaves a torn record in the log, and a crash would lose all that
   * is appended behind it. Opening again recovers up to the tear and goes on in a new file.
   */
  async function reopen(): Promise<void> {
    await db.close()
    await db.open()
    torn = false
  }

  /** The changes as LevelDB operations, without those an entry of newer event time withstands. */
  async function applicable(changes: Change[]): Promise<Operation[]> {
    const ordered = [...new Set(changes.filter((change) => change.order).map(keyOf))]
    const stored = ordered.length > 0 ? await db.getMany(ordered) : []
    const times = new Map(ordered.map((key, index) => [key, timeOf(stored[index])]))
    const operations: Operation[] = []
    for (const change of changes) {
      const key = keyOf(change)
      const time = times.get(key)
      if (change.order && time !== undefined && keepsStored(time, change.order)) continue
      if ('put' in change) {
        const written = change.order?.time ?? NaN
        operations.push({ type: 'put', key, value: encode(written, change.value) })
        if (times.has(key)) times.set(key, Number.isNaN(written) ? undefined : written)
      } else {
        operations.push({ type: 'del', key })
        if (times.has(key)) times.set(key, undefined)
      }
    }
    return operations
  }
}

async function openOrReplace(
  directory: string,
  onDamaged: ((movedTo: string, error: unknown) => void) | undefined,
): Promise<Level<string, Buffer>> {
  try {
    if (onDamaged) await checkFiles(directory)
    return await openLevel(directory, onDamaged !== undefined)
  } catch (error) {
    if (!onDamaged || !isDamage(error)) throw error
    const movedTo = `${directory}.damaged-${new Date().toISOString().replace(/[:.]/g, '-')}`
    await rename(directory, movedTo)
    const replacement = await openLevel(directory, false)
    onDamaged(movedTo, error)
    return replacement
  }
}

async function openLevel(directory: string, readAll: boolean): Promise<Level<string, Buffer>> {
  const db = new Level<string, Buffer>(directory, { keyEncoding: 'utf8', valueEncoding: 'buffer' })
  await db.open()
  try {
    // Damage inside a table shows only when it is read.
    if (readAll) for await (const _ of db.iterator());
  } catch (error) {
    await db.close()
    throw error
  }
  return db
}

/** LevelDB takes a directory without CURRENT for a new one, and deletes what else it finds there. */
async function checkFiles(directory: string): Promise<void> {
  const names: string[] = await readdir(directory).catch(() => [])
  const isNew = !names.some((name) => name.endsWith('.ldb') || name.startsWith('MANIFEST-'))
  if (!isNew && !names.includes('CURRENT')) throw new Error('Corruption: CURRENT file is missing')
}

/** Whether LevelDB says that the content is wrong; that a disk is full or a directory locked is no damage. */
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

function openFailure(directory: string, error: unknown): Error {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  const isLocked = cause instanceof Error && 'code' in cause && cause.code === 'LEVEL_LOCKED'
  if (isLocked) return new Error(`the store in ${directory} is in use by another process`)
  return new Error(`the store in ${directory} cannot be opened`, { cause })
}

interface Pending {
  changes: readonly Change[]
  resolve: () => void
  reject: (error: unknown) => void
}

type Operation = { type: 'put'; key: string; value: Buffer } | { type: 'del'; key: string }

/**
 * Size of one batch: enough to share a sync, and few enough that what follows the commits (a burst of
 * deliveries to every subscriber) reaches the network before the next batch piles up behind it.
 */
const groupBytes = 256 * 1024
const groupChanges = 512

function takeGroup(waiting: Pending[]): Pending[] {
  let bytes = 0
  let changes = 0
  let count = 0
  for (const pending of waiting) {
    changes += pending.changes.length
    for (const change of pending.changes) bytes += 'put' in change ? change.value.length : 0
    if (count > 0 && (changes > groupChanges || bytes > groupBytes)) break
    count++
  }
  return waiting.splice(0, count)
}

function keyOf(change: Change): string {
  return 'put' in change ? change.put : change.del
}

// A stored value is its event time (8 bytes, NaN for none) and then the bytes of the caller.

function encode(time: number, value: Buffer | string): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value
  const stored = Buffer.allocUnsafe(8 + bytes.length)
  stored.writeDoubleBE(time, 0)
  bytes.copy(stored, 8)
  return stored
}

function contentOf(stored: Buffer): Buffer {
  return stored.subarray(8)
}

function timeOf(stored: Buffer | undefined): number | undefined {
  if (stored === undefined) return undefined
  const time = stored.readDoubleBE(0)
  return Number.isNaN(time) ? undefined : time
}

/** Every key that starts with `prefix`: it ends in `/`, and `0` is the next byte after `/`. */
function keysBelow(prefix: string): { gte: string; lt: string } {
  return { gte: prefix, lt: `${prefix.slice(0, -1)}0` }
}
