import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'

/**
 * Gives measured systems one half of the cores, load generators the other half. On a shared core, the figures would
 * contain waits of the scheduler. Does nothing with one core, or without `taskset` (util-linux).
 */
export async function keepApart(systems: readonly number[], load: readonly number[]): Promise<void> {
  const cores = availableParallelism()
  if (cores < 2) return
  const half = Math.ceil(cores / 2)
  await Promise.all([
    ...systems.map((pid) => keepOn(`0-${half - 1}`, pid)),
    ...load.map((pid) => keepOn(`${half}-${cores - 1}`, pid)),
  ])
}

/**
 * Lets a process run only while no other process wants its core. With a low priority, the process would first finish
 * its time slice of some milliseconds. Does nothing without `chrt` (util-linux).
 */
export function workAside(pid: number): Promise<void> {
  return run('chrt', ['--all-tasks', '--idle', '--pid', '0', String(pid)])
}

/** Keeps all threads of a process on these cores, such as `0-3`. */
function keepOn(cores: string, pid: number): Promise<void> {
  return run('taskset', ['-a', '-c', '-p', cores, String(pid)])
}

async function run(command: string, args: readonly string[]): Promise<void> {
  try {
    await promisify(execFile)(command, args)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}
