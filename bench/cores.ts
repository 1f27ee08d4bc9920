import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'

/**
 * Keeps the measured systems on one half of the cores and the load generators on the other half, as if they were on two
 * machines. Otherwise the scheduler may put a subscriber and its server on one core while another core idles, and the
 * figures would contain that wait. Does nothing on a machine with one core or without `taskset` (util-linux).
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
 * Lets a process run only while no other process wants its core, as if the process were on another machine. A low
 * priority is not enough: the scheduler would let the process finish its time slice of some milliseconds first.
 * Does nothing without `chrt` (util-linux).
 */
export function workAside(pid: number): Promise<void> {
  return run('chrt', ['--all-tasks', '--idle', '--pid', '0', String(pid)])
}

/** Keeps all present and future threads of a process on these cores (such as `0-3`). */
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
