import type { ClassicLevel } from 'classic-level'
import {
  createGroupCommit,
  holds,
  isConditional,
  keepsStored,
  keyOf,
  numberedKey,
  numberedValue,
  numbersTaken,
  type Pending,
} from './commit.ts'
import { createRepeatedReads, type Damage, openDirectory, pagesOf, reopen } from './level/directory.ts'
import { startReclaiming, type Written } from './level/reclaiming.ts'
import { type Change, type ConditionalChange, ConditionFailed, type Dumpable, type Store } from './store.ts'
import { contentOf, counterKey, encode, entryOf, keysBelow, storedLength, timeOf } from './stored-value.ts'

/**
 * When a write has taken so long, commits that wait for it begin: live subscribers wait for no slow disk. Before, they
 * wait for the other commits of their group. Milliseconds.
 */
const slowMs = 20

/**
 * The embedded driver: LevelDB in one directory, one process per directory. Puts commits that wait into one synced
 * batch (group commit), so that they share the cost of the disk.
 *
 * Rejects with a readable reason if the directory cannot be opened. With `onDamaged`, repairs a damaged store, or
 * replaces it by an empty one if nothing can be saved.
 */
export async function openEmbeddedStore(
  directory: string,
  onDamaged?: (damage: Damage) => void,
): Promise<Store & Dumpable> {
  const db = await openDirectory(directory, onDamaged)
  const commits = createGroupCommit<NumberedPending>(write)
  /** Cache of stored event times, for keys that a change with an `order` has named. */
  const times: EventTimes = new Map()
  /** The counter of numbers (`Numbered`) on disk. `lastNumber`, the last number taken, may be ahead. */
  let storedNumber = await readCounter(db)
  const reclaiming = startReclaiming(db)
  const writing = createWriting(db, reclaiming.written)
  let lastNumber = storedNumber
  /** The disk has not answered for so long that waiting commits begin before it does. */
  let isSlow = false
  /** The last write succeeded, so the next write is expected to succeed. */
  let isTrusted = true
  const reading = createRepeatedReads(writing.reopening)
  let closed = false

  return {
    driver: 'embedded',
    isShared: false,
    onOthers: () => undefined,
    onTold: () => undefined,
    catchUp: async () => undefined,

    async get(key) {
      const stored = await reading(() => db.get(key))
      return stored === undefined ? undefined : contentOf(stored)
    },

    async *range(prefix, bounds = {}) {
      await writing.reopening()
      for await (const page of pagesOf(db, { ...keysBelow(prefix, bounds), limit: bounds.most ?? -1 })) {
        for (const [key, stored] of page) yield [key, contentOf(stored)]
      }
    },

    async last(prefix, count, before) {
      const range = { ...keysBelow(prefix, { before }), reverse: true, limit: count }
      const found = await reading(() => db.iterator(range).all())
      return found.map(([key, stored]) => [key, contentOf(stored)])
    },

    lastNumber: async () => lastNumber,

    hasFormer: async () => false,

    async *dump() {
      await writing.reopening()
      // All pages come from one LevelDB iterator: they show the store as it was at one moment.
      for await (const page of pagesOf(db, {})) {
        yield page.map(([key, stored]) => ({ key, value: contentOf(stored), time: timeOf(stored) }))
      }
    },

    commit(changes, underway) {
      if (closed) return Promise.reject(new Error('the store is closed'))
      if (changes.length === 0) return Promise.resolve(0)
      return new Promise((resolve, reject) => {
        const pending = { changes, underway, resolve, reject, mayFail: changes.some(mustCheck) }
        const before = commits.waiting().at(-1)
        const mayBegin = commits.isIdle() || (isSlow && (before === undefined || before.first !== undefined))
        commits.add(pending)
        if (mayBegin && !pending.mayFail) begin([pending])
      })
    },

    async close() {
      closed = true
      reclaiming.stop()
      await commits.ended()
      await db.close()
    },
  }

  async function write(group: readonly NumberedPending[]): Promise<void> {
    try {
      const mayFail = group.some((pending) => pending.mayFail)
      // `underway` is called first: otherwise the callers would wait while the batch is handed to LevelDB.
      if (!mayFail) begin(group)
      await writing.recover()
      const { operations, failed } = await applicable(db, group, { times, firstNumberOf })
      if (mayFail) begin(group.filter((pending) => !failed.has(pending)))
      const number = lastNumber // commits that begin during the write take further numbers
      if (number > storedNumber) operations.push({ key: counterKey, time: NaN, value: String(number) })
      const slow = setTimeout(() => {
        isSlow = true
        beginWaiting()
      }, slowMs)
      await writing.write(operations).finally(() => {
        clearTimeout(slow)
        isSlow = false
      })
      storedNumber = number
      isTrusted = true
      for (const pending of group) {
        const key = failed.get(pending)
        if (key === undefined) pending.resolve(firstNumberOf(pending))
        else pending.reject(new ConditionFailed(key))
      }
    } catch (error) {
      isTrusted = false
      times.clear()
      for (const pending of group) pending.reject(error)
    }
  }

  /** Begins the commits that wait, up to one of which it is open whether it applies. Those being written have begun. */
  function beginWaiting(): void {
    const waiting = commits.waiting()
    const open = waiting.findIndex(({ mayFail }) => mayFail)
    begin(open < 0 ? waiting : waiting.slice(0, open))
  }

  function begin(group: readonly NumberedPending[]): void {
    if (!isTrusted) return
    for (const pending of group) {
      // Even without `underway`, a commit takes its numbers here: the next commit takes the following ones.
      const first = firstNumberOf(pending)
      pending.underway?.(first)
      pending.underway = undefined
    }
  }

  /** The first call for a commit takes its numbers. Call this in commit order, and only for commits that apply. */
  function firstNumberOf(pending: NumberedPending): number {
    if (pending.first !== undefined) return pending.first
    const taken = numbersTaken(pending.changes)
    pending.first = taken === 0 ? 0 : lastNumber + 1
    lastNumber += taken
    return pending.first
  }
}

/**
 * Writes batches, and recovers from a failed write by opening the database again. The recovery handles two cases:
 * - A write that fails half-way leaves a torn record in LevelDB's log. A crash would then lose all later records.
 * - If only the sync has failed, LevelDB applies the rejected batch at the opening. The recovery then undoes the batch.
 */
function createWriting(db: ClassicLevel<string, Buffer>, written: Written) {
  /** The batch whose write failed. Undefined: the last write succeeded. */
  let failed: readonly Operation[] | undefined
  /** The stored values that the keys of this batch had before it. */
  let former: ReadonlyMap<string, Buffer | undefined> | undefined
  let reopening: Promise<void> | undefined

  return {
    /**
     * Undefined before the first recovery. Resolves when the last recovery has ended. Rejects if that recovery failed:
     * nothing is read until the failed batch is undone on disk.
     */
    reopening: () => reopening,

    /** Does nothing if the last write succeeded. */
    async recover(): Promise<void> {
      if (!failed) return
      // Reads the former values before the database is closed. Once open again, the database may show the failed batch.
      former ??= await readStored(
        db,
        failed.map(({ key }) => key),
      )
      reopening = reopen(db, former)
      await reopening
      failed = undefined
      former = undefined
    },

    /** Writes one atomic batch, and waits until it is on disk. */
    async write(operations: readonly Operation[]): Promise<void> {
      failed = operations
      await writeSynced(db, operations, written)
      failed = undefined
    },
  }
}

type EventTimes = Map<string, number | undefined>

/**
 * Turns the changes of a group into LevelDB operations. Leaves out changes whose stored entry stays (`keepsStored`),
 * and commits with a failed condition. `failed`: these commits, with the key of the condition. Gives all other commits
 * their first numbers, and brings `times` up to date.
 */
async function applicable(
  db: ClassicLevel<string, Buffer>,
  group: readonly NumberedPending[],
  { times, firstNumberOf }: { times: EventTimes; firstNumberOf: (pending: NumberedPending) => number },
): Promise<{ operations: Operation[]; failed: ReadonlyMap<Pending, string> }> {
  const unknown: string[] = []
  const conditional: string[] = []
  for (const { changes } of group) {
    for (const change of changes) {
      const key = keyOf(change)
      if ('order' in change && change.order && !times.has(key)) unknown.push(key)
      if (mustCheck(change)) conditional.push(key)
    }
  }
  await readTimes(db, unknown, times)
  const asked = await readStored(db, conditional)
  const isBroken = (change: Change) =>
    mustCheck(change) && !holds(change.when, entryOf(asked.get(keyOf(change))))
  const operations: Operation[] = []
  const failed = new Map<Pending, string>()
  for (const pending of group) {
    const broken = asked.size > 0 && pending.changes.find(isBroken)
    if (broken) {
      failed.set(pending, keyOf(broken))
      continue
    }
    const first = firstNumberOf(pending)
    for (const change of pending.changes) {
      // A `tell` is for other nodes, and there are none. A `check` changes nothing.
      if ('tell' in change || 'check' in change) continue
      const key = 'put' in change ? numberedKey(change, first) : change.del
      const stored = times.get(key)
      if (change.order && stored !== undefined && keepsStored(stored, change.order)) continue
      if ('put' in change) {
        const value = numberedValue(change, first)
        const time = change.order?.time ?? NaN
        operations.push({ key, time, value })
        if (asked.has(key)) asked.set(key, encode(time, value))
        if (change.order || stored !== undefined) times.set(key, change.order?.time)
      } else {
        operations.push({ key })
        if (asked.has(key)) asked.set(key, undefined)
        times.delete(key)
      }
    }
  }
  return { operations, failed }
}

async function readCounter(db: ClassicLevel<string, Buffer>): Promise<number> {
  const counter = await db.get(counterKey)
  return counter === undefined ? 0 : Number(contentOf(counter).toString())
}

async function readStored(
  db: ClassicLevel<string, Buffer>,
  keys: readonly string[],
): Promise<Map<string, Buffer | undefined>> {
  const stored = keys.length > 0 ? await db.getMany([...keys]) : []
  return new Map(keys.map((key, index) => [key, stored[index]]))
}

/** Reads the stored event times of keys, and adds them to `times`. */
async function readTimes(
  db: ClassicLevel<string, Buffer>,
  keys: readonly string[],
  times: EventTimes,
): Promise<void> {
  for (const [key, stored] of await readStored(db, keys)) times.set(key, timeOf(stored))
}

/**
 * Writes one atomic batch, waits until it is on disk, and counts it in `written`. An array for `db.batch` would take
 * ten times as long, because abstract-level copies each operation.
 */
async function writeSynced(
  db: ClassicLevel<string, Buffer>,
  operations: readonly Operation[],
  written: Written,
): Promise<void> {
  const batch = db.batch()
  let removed = 0
  let bytes = 0
  for (const operation of operations) {
    const { key } = operation
    if ('value' in operation) {
      put(batch, operation)
      bytes += operation.value.length
    } else {
      batch.del(key)
      removed++
    }
  }
  await batch.write({ sync: true })
  written.removed += removed
  written.bytes += bytes
}

interface NumberedPending extends Pending {
  /** It has a condition that this driver must check. */
  mayFail: boolean
  /** The first number of the commit, 0 if it takes none. Undefined until `firstNumberOf` gives it. */
  first?: number
}

const shared = Buffer.allocUnsafeSlow(64 * 1024)

/** Adds a put to a batch. Encodes all values in the same memory, because LevelDB copies the bytes of each put. */
function put(batch: ReturnType<ClassicLevel<string, Buffer>['batch']>, { key, time, value }: Put): void {
  const length = storedLength(value)
  const bytes = length > shared.length ? Buffer.allocUnsafe(length) : shared.subarray(0, length)
  batch.put(key, encode(time, value, bytes))
}

interface Put {
  key: string
  time: number
  value: Buffer | string
}

/** An operation without a value removes the key. */
type Operation = Put | { key: string }

/**
 * Whether this driver must check a condition of the change. Without other nodes, a condition with `onlyOthers` cannot
 * fail.
 */
function mustCheck(change: Change): change is ConditionalChange {
  return isConditional(change) && !('onlyOthers' in change)
}
