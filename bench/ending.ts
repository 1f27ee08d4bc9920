import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'

/* What ends with this process at the latest, however it ends: the folders it has made, and the processes it has started. */

const folders: string[] = []
const processes = new Set<ChildProcess>()

/** Makes an empty folder. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hub-bench-'))
  folders.push(folder)
  return folder
}

/** Starts a process that is killed when this one ends: by this one, and after `kill -9` by the kernel of Linux. */
export function spawnUntilEnd(command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child =
    process.platform === 'linux'
      ? spawn('setpriv', ['--pdeathsig', 'KILL', command, ...args], options)
      : spawn(command, args, options)
  processes.add(child)
  child.once('exit', () => processes.delete(child))
  return child
}

/** Ctrl-C, a closed terminal or `kill` end this process with an exit code. By default no `exit` handler would run. */
export function exitOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]))
  }
}

process.once('exit', () => {
  for (const child of processes) child.kill('SIGKILL')
  // A process that ends may still make a file: then a second try removes the folder.
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})
