import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { ClientError } from './errors.ts'
import { newClientId } from './link.ts'
import { wrongOption } from './options.ts'
import { takeLock } from './outbox-lock.ts'

export type Outbox = ReturnType<typeof openOutbox>

/** The file is written anew when it has at least so many characters, and more than twice what is still needed. */
const compactAt = 1024 * 1024

interface Kept {
  payload: string
  /** When it was published, milliseconds since the epoch by the clock of this machine. */
  at: number
}

/**
 * Opens the file that keeps events until they are settled. Throws `ClientError`: `option.invalid`,
 * `outbox.locked`, `outbox.unusable`.
 *
 * The file has a line of JSON each: first the client id, then events with a number, and the numbers of those that are
 * settled. It grows at its end and is replaced as a whole. A kill can only tear its last line.
 */
export function openOutbox(file: string) {
  if (typeof file !== 'string' || file === '') wrongOption('outbox', 'must be the path of a file')
  const path = absolute(file)
  const release = guard(path, () => takeLock(path))
  try {
    return openLocked(path, release)
  } catch (error) {
    release()
    throw error
  }
}

function openLocked(path: string, release: () => void) {
  const found = guard(path, () => read(path))
  let { clientId } = found
  const { kept, damaged } = found
  let last = kept.size
  /** Characters in the file, and of these the ones of events that are kept. */
  const written = guard(path, () => replaceIfRoom(path, textOf(clientId, kept), kept.size > 0))
  let size = written ?? 0
  let needed = [...kept.values()].reduce((sum, { payload }) => sum + payload.length, 0)
  let handle: FileHandle | undefined
  /** What is not in the file yet, and who waits until it is on the disk. */
  let lines = ''
  let waiting: { resolve(): void; reject(error: unknown): void }[] = []
  let mustReplace = written === undefined
  let writing: Promise<void> | undefined
  let isClosed = false
  const now = Date.now()
  // After the clock was set back, `at` may lie ahead. The event then counts as that old: it must not wait for ever.
  const restored = [...kept].map(([number, { payload, at }]) => ({
    number,
    payload,
    ageMs: Math.abs(now - at),
  }))

  function write(text: string): void {
    // The file may be another process's by now.
    if (isClosed) return
    lines += text
    // Whatever comes in the same turn goes into the same write.
    writing ??= Promise.resolve().then(writeAll)
  }

  async function writeAll(): Promise<void> {
    do {
      const text = lines
      const synced = waiting
      lines = ''
      waiting = []
      try {
        if (mustReplace || (size >= compactAt && size > 2 * needed)) await replaceNow()
        else await append(text, synced.length > 0)
        for (const { resolve } of synced) resolve()
      } catch (error) {
        // The last line may be torn: the next write makes the file anew.
        mustReplace = true
        for (const { reject } of synced) {
          reject(new ClientError('outbox.unusable', `${path}: ${reasonOf(error)}`, { cause: error }))
        }
      }
    } while (lines !== '')
    writing = undefined
  }

  async function append(text: string, sync: boolean): Promise<void> {
    handle ??= await open(path, 'a')
    await handle.appendFile(text)
    size += text.length
    if (sync) await handle.datasync()
  }

  async function replaceNow(): Promise<void> {
    const former = handle
    handle = undefined
    await former?.close()
    size = replace(path, textOf(clientId, kept))
    mustReplace = false
  }

  return {
    clientId,
    /** Events of an earlier process. `ageMs`: since they were published. */
    restored,
    /** Number of lines that could not be read. */
    damaged,
    /** Keeps an event. `synced` resolves when it is on the disk, and rejects with `outbox.unusable`. */
    add(payload: string): { number: number; synced: Promise<void> } {
      last++
      const event = { payload, at: Date.now() }
      kept.set(last, event)
      needed += payload.length
      const synced = new Promise<void>((resolve, reject) => waiting.push({ resolve, reject }))
      write(eventLine(last, event))
      return { number: last, synced }
    },
    /** The event needs not be kept any more. If this is lost, it is sent again, which does no harm. */
    settled(number: number): void {
      const event = kept.get(number)
      if (event === undefined) return
      kept.delete(number)
      needed -= event.payload.length
      write(`${JSON.stringify({ settled: number })}\n`)
    },
    /** Keeps another client id from now on. */
    rename(next: string): void {
      clientId = next
      mustReplace = true
      write('')
    },
    /** What is settled later stays in the file, and is sent again. */
    async close(): Promise<void> {
      isClosed = true
      await writing
      try {
        await handle?.close()
      } finally {
        release()
      }
    },
  }
}

function read(path: string): { clientId: string; kept: Map<number, Kept>; damaged: number } {
  const kept = new Map<number, Kept>()
  const found = statSync(path, { throwIfNoEntry: false })
  // To read a queue or a device might take for ever, and to replace it would harm others.
  if (found && !found.isFile()) throw new ClientError('outbox.unusable', `${path} is no file`)
  const content = found ? readFileSync(path) : Buffer.of()
  if (content.length === 0) return { clientId: newClientId(), kept, damaged: 0 }
  const [head, ...lines] = linesOf(content)
  const { outbox, clientId } = parse(head)
  if (outbox !== 1 || typeof clientId !== 'string') {
    throw new ClientError('outbox.unusable', `${path} is no outbox: nothing was changed`)
  }
  let damaged = 0
  for (const line of lines) {
    const { number, at, payload, settled } = parse(line)
    if (typeof settled === 'number') kept.delete(settled)
    else if (typeof number === 'number' && typeof at === 'number' && at < 2 ** 63 && isEvent(payload))
      kept.set(number, { payload, at })
    else damaged++
  }
  // Numbered anew: in a damaged file a number may be too large to count on from.
  const counted = [...kept.values()].map((event, index) => [index + 1, event] as const)
  return { clientId, kept: new Map(counted), damaged }
}

/** Leaves out what stands behind the last line end: a line that was torn. */
function linesOf(content: Buffer): Buffer[] {
  const lines: Buffer[] = []
  for (let from = 0, to = content.indexOf('\n'); to >= 0; to = content.indexOf('\n', from)) {
    lines.push(content.subarray(from, to))
    from = to + 1
  }
  return lines
}

/**
 * Like `replace`. Undefined: the disk is full, and the file has events. They go out all the same; the next write tries
 * again.
 */
function replaceIfRoom(path: string, text: string, hasEvents: boolean): number | undefined {
  try {
    return replace(path, text)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (hasEvents && fullCodes.includes(code)) return undefined
    throw error
  }
}

/** The disk is full, or what this user or this process may write. */
const fullCodes: unknown[] = ['ENOSPC', 'EDQUOT', 'EFBIG']

/** Puts a new file in the place of the old one, all of it or nothing. Returns its number of characters. */
function replace(path: string, text: string): number {
  const next = `${path}.new`
  // In a folder where others may write, it may be theirs, or a link.
  rmSync(next, { force: true })
  const file = openSync(next, 'wx', 0o600)
  try {
    writeFileSync(file, text)
    fdatasyncSync(file)
  } catch (error) {
    // On a full disk, the half that is written takes the room that others need.
    rmSync(next, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
  renameSync(next, path)
  // Windows cannot open a directory, and needs no sync of it.
  if (process.platform === 'win32') return text.length
  const directory = openSync(dirname(path), 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
  return text.length
}

function textOf(clientId: string, kept: ReadonlyMap<number, Kept>): string {
  const head = `${JSON.stringify({ outbox: 1, clientId })}\n`
  return head + [...kept].map(([number, event]) => eventLine(number, event)).join('')
}

const eventLine = (number: number, { payload, at }: Kept) => `${JSON.stringify({ number, at, payload })}\n`

/** Reads a line. Empty: it is no JSON, or holds bytes that are no UTF-8. */
function parse(line: Buffer | undefined): Record<string, unknown> {
  try {
    return Object(JSON.parse(utf8.decode(line)))
  } catch {
    return {}
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function isEvent(payload: unknown): payload is string {
  return typeof payload === 'string' && 'event' in parse(Buffer.from(payload))
}

/** Two ways to write a path must not be two locks. */
function absolute(file: string): string {
  const path = resolve(file)
  return guard(path, () =>
    existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path)),
  )
}

/** Calls `act`. Turns an error of the file system into a `ClientError`. */
function guard<Result>(path: string, act: () => Result): Result {
  try {
    return act()
  } catch (error) {
    if (error instanceof ClientError) throw error
    throw new ClientError('outbox.unusable', `${path}: ${reasonOf(error)}`, { cause: error })
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
