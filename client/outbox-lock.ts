import { lstatSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ClientError } from './errors.ts'

/** The locks of this process. Where the system does not tell when a process started, the lock file says nothing about them. */
const held = new Set<string>()

/**
 * Takes the lock of a file for this process. Returns what gives it back. Throws `ClientError` with `outbox.locked`.
 *
 * Each process has a lock file of its own, with its process id in the name. It makes the file, and then looks for files
 * of others: of two that start together at least one sees the other, and the file of a dead process can be removed
 * without a race. The process must be one of the same machine and the same container.
 */
export function takeLock(path: string): () => void {
  const own = `${path}.lock-${process.pid}`
  const release = () => {
    held.delete(path)
    rmSync(own, { force: true })
  }
  if (held.has(path) || !make(own)) {
    throw new ClientError('outbox.locked', `${path} is in use by this process`)
  }
  const prefix = `${basename(path)}.lock-`
  for (const name of readdirSync(dirname(path))) {
    const file = join(dirname(path), name)
    const pid = Number(name.slice(prefix.length))
    if (!name.startsWith(prefix) || !Number.isInteger(pid) || pid <= 0 || file === own) continue
    if (isHolder(pid, file)) {
      release()
      throw new ClientError('outbox.locked', `${path} is in use by process ${pid}`)
    }
    rmSync(file, { force: true })
  }
  held.add(path)
  return release
}

/** Makes the lock file of this process. False: another thread of it, or another copy of this package, has made it. */
function make(own: string): boolean {
  const start = startOf('self')
  try {
    writeFileSync(own, start, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    const isThere = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    if (!isThere) {
      // On a full disk it may be there, empty, and would look like one that is being made.
      rmSync(own, { force: true })
      throw error
    }
    if (start !== '' && textOf(own) === start) return false
    // It is of a dead process that had this process id, or somebody else has put it there.
    rmSync(own)
    writeFileSync(own, start, { mode: 0o600, flag: 'wx' })
  }
  return true
}

/** Whether the process that wrote the lock file still runs. */
function isHolder(pid: number, file: string): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    // EPERM: it runs, and belongs to another user.
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false
  }
  const [written, now] = [textOf(file), startOf(pid)]
  // Another process may have the process id by now. An empty file was made this moment.
  return written === '' || now === '' || written === now
}

/** When a process started, as Linux tells. Empty where nobody tells. */
function startOf(pid: number | 'self'): string {
  const start = textOf(`/proc/${pid}/stat`)
  // The name of the program, in brackets, may hold spaces. The start is the 20th field behind it.
  const ticks = start.slice(start.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  return ticks && `${textOf('/proc/sys/kernel/random/boot_id').trim()} ${ticks}`
}

function textOf(file: string): string {
  try {
    // To read a queue might take for ever.
    return lstatSync(file).isFile() ? readFileSync(file, 'utf8') : ''
  } catch {
    return ''
  }
}
