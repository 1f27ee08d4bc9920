import { type FileHandle, open, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'

export type Audit = ReturnType<typeof createAudit>

/** Who changed what (design.md §4). `detail` is whatever explains the change; never a password. */
export interface AuditEntry {
  at: string
  who: string
  action: string
  target: string
  detail: unknown
}

/**
 * The audit log: JSON lines that are only ever appended. The file is opened for every entry, so that
 * it can be rotated away from outside.
 */
export function createAudit(path: string, clock: () => number) {
  let last: Promise<void> = Promise.resolve()

  return {
    /** Appends an entry. When it resolves the entry survives power loss. */
    record(entry: Omit<AuditEntry, 'at'>): Promise<void> {
      const { who, action, target, detail } = entry
      const line = JSON.stringify({
        at: new Date(clock()).toISOString(),
        who,
        action,
        target,
        detail: detail ?? null,
      })
      const recorded = last.then(() => append(path, line))
      last = recorded.catch(() => undefined)
      return recorded
    },

    /** All entries that can be read, oldest first. */
    async list(): Promise<AuditEntry[]> {
      const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return ''
        throw error
      })
      return text.split('\n').flatMap(parseEntry)
    },
  }
}

async function append(path: string, line: string): Promise<void> {
  const file = await open(path, 'a+', 0o600)
  try {
    const { size } = await file.stat()
    // A crash may have cut the last line short: the next entry must not become part of it.
    await file.appendFile((await endsMidLine(file, size)) ? `\n${line}\n` : `${line}\n`)
    await file.sync()
    if (size === 0) await syncDirectory(dirname(path))
  } finally {
    await file.close()
  }
}

async function endsMidLine(file: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return false
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
  return buffer.toString() !== '\n'
}

/** A new file survives power loss only with its directory entry. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path)
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

/** No entry for an empty line and for one that a crash cut short. */
function parseEntry(line: string): AuditEntry[] {
  try {
    const entry: unknown = JSON.parse(line)
    return isEntry(entry) ? [entry] : []
  } catch {
    return []
  }
}

function isEntry(value: unknown): value is AuditEntry {
  return (
    typeof value === 'object' &&
    value !== null &&
    ['at', 'who', 'action', 'target'].every((name) => typeof Reflect.get(value, name) === 'string')
  )
}
