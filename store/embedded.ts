import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { createGroupCommit, type Pending } from './group-commit.ts'
import { finishMending, type Mending, mend } from './repair.ts'
import {
  type Change,
  ConditionFailed,
  holds,
  isConditional,
  keepsStored,
  keyOf,
  numbersTaken,
  type Store,
  withNumbers,
} from './store.ts'
import { contentOf, counterKey, encode, entryOf, keysBefore, keysBelow, timeOf } from './stored-value.ts'
import { checkTables, unread } from './table.ts'

/**
 * The embedded driver: LevelDB in one directory, one process per directory.
 *
 * Waiting commits are written together as one synced batch (group commit), so that the cost of the
 * disk is shared under load and an acknowledgement still means "on disk".
 * Rejects with a readable reason when the directory cannot be opened. With `onDamaged` a directory whose
 * content cannot be read is repaired instead, or an empty store takes its place.
 */
export async function openEmbeddedStore(
  directory: string,
  onDamaged?: (damage: Damage) => void,
): Promise<Store> {
  const db = await openOrMend(directory, onDamaged).catch((error: unknown) => {
    throw openFailure(directory, error)
  })
  const commits = createGroupCommit(write)
  /** Event times of the entries that have been asked about, as they are stored. */
  const times = new Map<string, number | undefined>()
  const counter = await db.get(counterKey)
  /** The last number that is stored, and the last that was taken. */
  let storedNumber = counter === undefined ? 0 : Number(contentOf(counter).toString())
  let lastNumber = storedNumber
  let torn = false
  /** The last write went well, so that the next will. */
  let isTrusted = true
  let reopening: Promise<void> | undefined
  let closed = false

  return {
    driver: 'embedded',

    async get(key) {
      await reopening
      const stored = await db.get(key)
      return stored === undefined ? undefined : contentOf(stored)
    },

    async *range(prefix, from) {
      await reopening
      for await (const page of pagesOf(db, keysBelow(prefix, from))) {
        for (const [key, stored] of page) yield [key, contentOf(stored)]
      }
    },

    async last(prefix, count, before) {
      await reopening
      const found = db.iterator({ ...keysBefore(prefix, before), reverse: true, limit: count })
      return (await found.all()).map(([key, stored]) => [key, contentOf(stored)])
    },

    lastNumber: async () => lastNumber,

    commit(changes, underway) {
      if (closed) return Promise.reject(new Error('the store is closed'))
      if (changes.length === 0) return Promise.resolve(0)
      return new Promise((resolve, reject) => {
        const isNext = isTrusted && commits.isIdle() && !changes.some(isConditional)
        const pending = { changes, underway: isNext ? undefined : underway, resolve, reject }
        commits.add(pending)
        // With nothing before it, it is underway before this turn is over.
        if (isNext) underway?.(firstNumberOf(pending))
      })
    },

    async close() {
      closed = true
      await commits.ended()
      await db.close()
    },
  }

  async function write(group: readonly NumberedPending[]): Promise<void> {
    try {
      const mayFail = group.some(hasConditions)
      // First of all: handing a batch to LevelDB takes longer than deciding about an event.
      if (!mayFail) begin(group)
      if (torn) {
        reopening = reopen()
        await reopening
      }
      const failed = new Map<Pending, string>()
      const operations = await applicable(group, failed)
      if (mayFail) begin(group.filter((pending) => !failed.has(pending)))
      if (lastNumber > storedNumber) {
        operations.push({ type: 'put', key: counterKey, value: encode(NaN, String(lastNumber)) })
      }
      await writeSynced(db, operations)
      storedNumber = lastNumber
      isTrusted = true
      for (const pending of group) {
        const key = failed.get(pending)
        if (key === undefined) pending.resolve(firstNumberOf(pending))
        else pending.reject(new ConditionFailed(key))
      }
    } catch (error) {
      isTrusted = false
      torn = true
      times.clear()
      for (const pending of group) pending.reject(error)
    }
  }

  function begin(group: readonly NumberedPending[]): void {
    if (!isTrusted) return
    for (const pending of group) {
      // Also where nobody asks: the next commit's number depends on it.
      const first = firstNumberOf(pending)
      pending.underway?.(first)
    }
  }

  /** A commit takes its numbers when this is first asked: in the order of the calls, and only if it applies. */
  function firstNumberOf(pending: NumberedPending): number {
    if (pending.first !== undefined) return pending.first
    const taken = numbersTaken(pending.changes)
    pending.first = taken === 0 ? 0 : lastNumber + 1
    lastNumber += taken
    return pending.first
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

  /**
   * The changes as LevelDB operations, without those an entry of newer event time withstands, and without commits one
   * of whose conditions does not hold: these are added to `failed`, with the key of that condition.
   */
  async function applicable(
    group: readonly NumberedPending[],
    failed: Map<Pending, string>,
  ): Promise<Operation[]> {
    await readTimes(group.flatMap(({ changes }) => changes.filter(isOrdered).map(keyOf)))
    const asked = await readStored(group.flatMap(({ changes }) => changes.filter(isConditional).map(keyOf)))
    const isBroken = (change: Change) =>
      isConditional(change) && !holds(change.when, entryOf(asked.get(keyOf(change))))
    const operations: Operation[] = []
    for (const pending of group) {
      const broken = asked.size > 0 && pending.changes.find(isBroken)
      if (broken) {
        failed.set(pending, keyOf(broken))
        continue
      }
      for (const change of withNumbers(pending.changes, firstNumberOf(pending))) {
        // Words are for other nodes, and there are none.
        if ('tell' in change || 'check' in change) continue
        const key = keyOf(change)
        const time = times.get(key)
        if (change.order && time !== undefined && keepsStored(time, change.order)) continue
        if ('put' in change) {
          const written = change.order?.time ?? NaN
          const value = encode(written, change.value)
          operations.push({ type: 'put', key, value })
          if (asked.has(key)) asked.set(key, value)
          if (change.order || times.has(key)) times.set(key, Number.isNaN(written) ? undefined : written)
        } else {
          operations.push({ type: 'del', key })
          if (asked.has(key)) asked.set(key, undefined)
          times.delete(key)
        }
      }
    }
    return operations
  }

  /** The stored values of some keys, in which later changes are noted. */
  async function readStored(keys: readonly string[]): Promise<Map<string, Buffer | undefined>> {
    const stored = keys.length > 0 ? await db.getMany([...keys]) : []
    return new Map(keys.map((key, index) => [key, stored[index]]))
  }

  async function readTimes(keys: readonly string[]): Promise<void> {
    const unknown = [...new Set(keys.filter((key) => !times.has(key)))]
    if (unknown.length === 0) return
    const stored = await db.getMany(unknown)
    for (const [index, key] of unknown.entries()) times.set(key, timeOf(stored[index]))
  }
}

/** One atomic batch. Handed over as an array it takes ten times as long: abstract-level copies each operation. */
async function writeSynced(
  db: ClassicLevel<string, Buffer>,
  operations: readonly Operation[],
): Promise<void> {
  const batch = db.batch()
  for (const operation of operations) {
    if (operation.type === 'put') batch.put(operation.key, operation.value)
    else batch.del(operation.key)
  }
  await batch.write({ sync: true })
}

/** What was wrong with a store, and what was done about it. */
export type Damage =
  | (Mending & { error: unknown })
  /** LevelDB left out a part of its log that it cannot read. A power failure may leave one as well, at the end. */
  | { outcome: 'cut'; bytes: number }

async function openOrMend(
  directory: string,
  onDamaged: ((damage: Damage) => void) | undefined,
): Promise<ClassicLevel<string, Buffer>> {
  if (!onDamaged) return openLevel(directory, false)
  await finishMending(directory)
  try {
    await checkFiles(directory)
    await checkTables(directory)
    const db = await openLevel(directory, true)
    const bytes = await droppedBytes(directory)
    if (bytes > 0) onDamaged({ outcome: 'cut', bytes })
    return db
  } catch (error) {
    if (!isDamage(error)) throw error
    const mending = await mend(directory)
    const db = await openLevel(directory, false)
    onDamaged({ ...mending, error })
    return db
  }
}

async function openLevel(directory: string, readAll: boolean): Promise<ClassicLevel<string, Buffer>> {
  const encodings = { keyEncoding: 'utf8', valueEncoding: 'buffer' }
  const db = new ClassicLevel<string, Buffer>(directory, { ...encodings, writeBufferSize })
  await db.open()
  try {
    if (readAll) await readThrough(db)
  } catch (error) {
    await db.close()
    throw error
  }
  return db
}

/** What a table holds shows only when it is read. */
async function readThrough(db: ClassicLevel<string, Buffer>): Promise<void> {
  let gte = ''
  for (const prefix of unread) {
    for await (const _ of pagesOf(db, { gte, lt: prefix }));
    gte = keysBelow(prefix).lt
  }
  for await (const _ of pagesOf(db, { gte }));
}

/** The entries of a range, page by page: a promise for each entry would take most of the time. */
async function* pagesOf(db: ClassicLevel<string, Buffer>, range: { gte: string; lt?: string }) {
  const entries = db.iterator({ ...range, highWaterMarkBytes: pageSize.bytes })
  try {
    // Some look at the first entry only.
    for (let count = 1; ; count = pageSize.entries) {
      const page = await entries.nextv(count)
      if (page.length === 0) return
      yield page
    }
  } finally {
    await entries.close()
  }
}

/** Bytes that LevelDB collects before it writes a file: with its own 4 MiB the journal is rewritten more often. */
const writeBufferSize = 16 * 1024 * 1024

const pageSize = { entries: 1_000, bytes: 128 * 1024 }

/** What LevelDB left out when it opened, according to its own log: it does not say so otherwise. */
async function droppedBytes(directory: string): Promise<number> {
  const text = await readFile(join(directory, 'LOG'), 'utf8').catch(() => '')
  const drops = [...text.matchAll(/\.log: dropping (\d+) bytes/g)]
  return drops.reduce((sum, [, bytes]) => sum + Number(bytes), 0)
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
  if (error instanceof Error && error.message.startsWith('the store in ')) return error
  const cause = error instanceof Error ? (error.cause ?? error) : error
  const isLocked = cause instanceof Error && 'code' in cause && cause.code === 'LEVEL_LOCKED'
  if (isLocked) return new Error(`the store in ${directory} is in use by another process`)
  return new Error(`the store in ${directory} cannot be opened`, { cause })
}

interface NumberedPending extends Pending {
  /** Its first number, once it took any. */
  first?: number
}

type Operation = { type: 'put'; key: string; value: Buffer } | { type: 'del'; key: string }

function isOrdered(change: Change): boolean {
  return 'order' in change && change.order !== undefined
}

function hasConditions({ changes }: Pending): boolean {
  return changes.some(isConditional)
}
