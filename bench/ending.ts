import type { ChildProcess } from 'node:child_process'
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

/** Kills a process when this one ends. */
export function endWithBench(child: ChildProcess): void {
  processes.add(child)
  child.once('exit', () => processes.delete(child))
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
