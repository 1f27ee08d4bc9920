import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'

/**
 * Gives the systems one half of the cores and the load the other, as if that came from another machine: where they
 * share, the scheduler lets a subscriber take turns with its server on one core while the other idles, and that is
 * what would be measured. Does nothing where there is one core only, or no `taskset` (util-linux).
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

/** With all its threads, and those it will start. */
async function keepOn(cores: string, pid: number): Promise<void> {
  try {
    await promisify(execFile)('taskset', ['-a', '-c', '-p', cores, String(pid)])
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
}
