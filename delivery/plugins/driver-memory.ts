import { readFile } from 'node:fs/promises'

/** Memory of a process, megabytes. 0: the process has ended, or the system does not say (it is no Linux). */
export async function memoryOf(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024
}
