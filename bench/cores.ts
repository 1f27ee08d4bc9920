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

/** Keeps all threads of a process on these cores, such as `0-3`. Tries again where a thread ended meanwhile. */
export async function keepOn(cores: string, pid: number, attempts = 10): Promise<void> {
  const args = ['-a', '-c', '-p', cores, String(pid)]
  try {
    await promisify(execFile)('taskset', args, { env: { ...process.env, LC_ALL: 'C' } })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error
    if (error.code === 'ENOENT') return
    if (attempts === 1 || !error.message.includes('No such process')) throw error
    await keepOn(cores, pid, attempts - 1)
  }
}
