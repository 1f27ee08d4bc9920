import { randomUUID } from 'node:crypto'
import { type FileHandle, open, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { sync } from '../config/sync.ts'
import { isRecord } from '../event/json.ts'
import { failure, isRefusal, refusal } from '../operations/errors.ts'
import { storeKeys } from '../store/keys.ts'
import { createLocks } from '../store/lock.ts'
import { type Change, OutcomeUnknown, type Store } from '../store/store.ts'
import { reasonOf } from '../telemetry/reason.ts'

export type Audit = ReturnType<typeof createAudit>

/** An entry of the audit log: who changed what (design.md §4). `detail` must hold no password. */
export interface AuditEntry {
  at: string
  who: string
  action: string
  target: string
  detail: unknown
  /** Name of the node that made the change, if the store is shared. */
  node?: string
}

/** Writes the entry of a change that is about to be made. If this rejects, nothing may be changed. */
export type First = (target: string, detail: unknown) => Promise<void>

/** `node`: name of this node. `limit`: maximum number of entries in the store. */
interface Shared {
  store: Store
  node: string
  limit?: number
  /** Appends a line to the file, which another process writes. Absent: this process writes it. */
  append?: ((line: string) => Promise<void>) | undefined
}

/** Prefix of the keys of shared entries: `audit/{time} {unique part}`. */
export const auditPrefix = storeKeys.audit.prefix
/** Maximum number of entries in a shared store. Older entries are only in the files of the nodes. */
const maxSharedAuditEntries = 10_000
/** After this many entries of its own, a node removes surplus entries from the store. */
const pruneEvery = 100

/**
 * The audit log: a file of JSON lines. The file is opened for each entry, so that log rotation can move it away. A
 * shared store also keeps the newest entries of all nodes. A new entry goes into both file and store, or into neither.
 */
export function createAudit(path: string, clock: () => number, of?: Shared) {
  const shared = of?.store.isShared ? of : undefined
  const writing = createLocks()
  let recordedHere = 0
  /**
   * Deletions that still have to be committed. Each one removes a shared entry that could not be written to the file.
   */
  let pendingDeletions: Change[] = []

  return {
    record,

    /**
     * Makes a change. `first` writes the audit entry: `work` must call `first` before it changes anything. If `first`
     * rejects, nothing is changed. If the change fails, a second entry says so.
     */
    async change<T>(who: string, action: string, work: (first: First) => Promise<T>): Promise<T> {
      let written: { target: string; detail: unknown } | undefined
      try {
        return await work(async (target, detail) => {
          await record({ who, action, target, detail }).catch((cause: unknown) => {
            throw refusal(`nothing was changed: the audit log cannot be written (${reasonOf(cause)})`)
          })
          written = { target, detail }
        })
      } catch (error) {
        if (written === undefined) throw error
        const { target } = written
        const noted = await record({ who, action, target, detail: { failed: reasonOf(error) } }).then(
          () => 'as the audit log says',
          (cause: unknown) => `and the audit log cannot say so (${reasonOf(cause)})`,
        )
        throw isRefusal(error) ? error : failure(`${whatFailed(error)}, ${noted}; ${seeLog}`, error)
      }
    },

    /** All entries that can be read, oldest first. */
    async list(): Promise<AuditEntry[]> {
      if (shared) return (await sharedLines(shared.store)).flatMap(([, line]) => parseEntry(line))
      const entries: AuditEntry[] = []
      for await (const lines of readAuditLines(path)) entries.push(...lines.flatMap(parseEntry))
      return entries
    },
  }

  /** Appends an entry. Once the promise resolves, the entry survives power loss. */
  function record(entry: Omit<AuditEntry, 'at'>): Promise<void> {
    const { who, action, target, detail } = entry
    const at = new Date(clock()).toISOString()
    const line = JSON.stringify({
      at,
      who,
      action,
      target,
      detail: detail ?? null,
      ...(shared && { node: shared.node }),
    })
    return writing.hold('', () => (shared ? appendAndShare(shared, at, line) : appendToAudit(path, line)))
  }

  /**
   * Stores the entry before it goes into the file. If the file cannot be written, the entry is removed from the store
   * again.
   */
  async function appendAndShare(
    { store, limit = maxSharedAuditEntries, append = (line) => appendToAudit(path, line) }: Shared,
    at: string,
    line: string,
  ) {
    const key = `${auditPrefix}${at} ${randomUUID()}`
    try {
      await store.commit([...pendingDeletions, { put: key, value: line }])
      pendingDeletions = []
      await append(line)
    } catch (error) {
      pendingDeletions.push({ del: key })
      const removed = store.commit(pendingDeletions).then(() => {
        pendingDeletions = []
      })
      // If the removal fails as well, the commit of the next entry repeats it.
      await removed.catch(() => undefined)
      throw error
    }
    if (recordedHere++ % pruneEvery === 0) await prune(store, limit).catch(() => undefined)
  }
}

/** The file with the entries of a node. */
export function auditPath(dataDir: string): string {
  return join(dataDir, 'audit.log')
}

/** Path of the audit file. Undefined for a shared store, which has the entries of all nodes. */
export function ownAuditFile(store: Pick<Store, 'isShared'>, dataDir: string): string | undefined {
  return store.isShared ? undefined : auditPath(dataDir)
}

/** Yields the readable lines of an audit file, page by page. Yields none if there is no file. */
export async function* readAuditLines(path: string): AsyncGenerator<string[]> {
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!file) return
  let rest = ''
  for await (const chunk of file.createReadStream({ encoding: 'utf8' })) {
    const lines = `${rest}${chunk}`.split('\n')
    rest = lines.pop() ?? ''
    yield lines.filter(isReadable)
  }
  yield [rest].filter(isReadable)
}

/** Adds audit lines of another hub to the file, sorted by time and without repetitions. */
export async function addAuditLines(path: string, lines: readonly string[]): Promise<void> {
  const times = new Map<string, string>()
  const add = (line: string) => {
    for (const { at } of parseEntry(line)) times.set(line, at)
  }
  lines.forEach(add)
  for await (const own of readAuditLines(path)) own.forEach(add)
  const all = [...times].sort(([, a], [, b]) => Number(a > b) - Number(a < b)).map(([line]) => line)
  const draft = `${path}.new`
  const file = await open(draft, 'w', 0o600)
  try {
    await file.writeFile([...all, ''].join('\n'))
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, path)
  await sync(dirname(path))
}

async function prune(store: Store, limit: number): Promise<void> {
  const surplus = (await sharedLines(store)).slice(0, -limit)
  if (surplus.length > 0) await store.commit(surplus.map(([key]) => ({ del: key })))
}

const seeLog = 'the log of the node says why'

function whatFailed(error: unknown): string {
  return error instanceof OutcomeUnknown
    ? 'the store did not answer: it is not known whether the change was made'
    : 'the change failed'
}

/** Shared entries, oldest first. */
async function sharedLines(store: Store): Promise<[key: string, line: string][]> {
  const lines: [string, string][] = []
  for await (const [key, value] of store.range(auditPrefix)) lines.push([key, value.toString()])
  return lines
}

/** Appends a line to an audit file, of which the caller is the only writer. The line then survives power loss. */
export async function appendToAudit(path: string, line: string): Promise<void> {
  const file = await open(path, 'a+', 0o600)
  try {
    const { size } = await file.stat()
    // A crash may have cut the last line short: the next entry must not become part of it.
    await file.appendFile((await endsMidLine(file, size)) ? `\n${line}\n` : `${line}\n`)
    await file.sync()
    if (size === 0) await sync(dirname(path))
  } finally {
    await file.close()
  }
}

async function endsMidLine(file: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return false
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
  return buffer.toString() !== '\n'
}

/** The entry in a line. Empty if a crash cut the line short. */
function parseEntry(line: string): AuditEntry[] {
  try {
    const entry: unknown = JSON.parse(line)
    return isEntry(entry) ? [entry] : []
  } catch {
    return []
  }
}

function isReadable(line: string): boolean {
  return parseEntry(line).length > 0
}

function isEntry(value: unknown): value is AuditEntry {
  return isRecord(value) && ['at', 'who', 'action', 'target'].every((name) => typeof value[name] === 'string')
}
