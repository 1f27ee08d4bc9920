import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'

/**
 * Gives the systems one half of the cores and the load the other, as if the load came from another machine. Otherwise
 * the scheduler may put a subscriber and its server on one core while another core idles: the bench would measure that.
 * Does nothing where there is one core only, or no `taskset` (util-linux).
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
 * Lets a process work only while no other process wants its core, as if it were on another machine. A low priority is not
 * enough: a process of low priority ends its slice of some milliseconds before the scheduler lets another one go on.
 * Does nothing without `chrt` (util-linux).
 */
export function workAside(pid: number): Promise<void> {
  return run('chrt', ['--all-tasks', '--idle', '--pid', '0', String(pid)])
}

/** Keeps a process on these cores, with the threads that it has and will start. */
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
