import type { Usage } from './child.ts'

/** Begins to count the CPU time of a system. The returned function tells the microseconds for each of `count`. */
export async function countCpu({ usage }: { usage: () => Promise<Usage> }) {
  const before = await usage()
  return async (count: number) => (((await usage()).cpuMs - before.cpuMs) * 1000) / count
}
