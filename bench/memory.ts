import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

const mebibyte = 1024 * 1024
const lookEveryMs = 25

/** Resident memory of a process now and at its highest, bytes; undefined where there is no /proc, or no process any more. */
export async function residentMemory(pid: number): Promise<{ now: number; highest: number } | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1])
  const [now, highest] = [kilobytes('VmRSS') * 1024, kilobytes('VmHWM') * 1024]
  return now > 0 && highest > 0 ? { now, highest } : undefined
}

/** Watches the resident memory of a process: by how much it grew at most, and its highest, bytes. */
export function watchMemory(pid: number) {
  let first: number | undefined
  let most = 0
  let highest = 0
  const look = async () => {
    const memory = await residentMemory(pid)
    if (!memory) return
    // Between two looks it may have been higher, which the kernel remembers.
    if (highest > 0 && memory.highest > highest) most = Math.max(most, memory.highest)
    highest = memory.highest
    first ??= memory.now
    most = Math.max(most, memory.now)
  }
  void look()
  const timer = setInterval(() => void look(), lookEveryMs)
  return {
    async end(): Promise<{ growth: number; highest: number }> {
      clearInterval(timer)
      await look()
      return { growth: most - (first ?? NaN), highest }
    },
  }
}

/** How a process is started that may have so much memory. */
export interface Bound {
  /** What is put in front of its command. */
  command: string[]
  /** What it needs in its environment. */
  env: Record<string, string>
  /** `cgroup`: the kernel ends a process that wants more. `watched`: who started it has to look. */
  by: 'cgroup' | 'watched'
}

/**
 * Bounds memory with a cgroup where systemd makes one. Elsewhere the process gets the heap that Node would choose in
 * such a cgroup, half of it, and has to be watched. `ulimit -v` is no way: it counts addresses, of which V8 reserves
 * gigabytes.
 */
export async function boundMemory(mebibytes: number): Promise<Bound> {
  const properties = ['-p', `MemoryMax=${mebibytes * mebibyte}`, '-p', 'MemorySwapMax=0']
  const command = ['systemd-run', '--scope', '--quiet', '--collect', ...properties, '--']
  try {
    await promisify(execFile)(command[0] ?? '', [...command.slice(1), 'true'])
    return { command, env: {}, by: 'cgroup' }
  } catch {
    const env = { NODE_OPTIONS: `--max-old-space-size=${Math.floor(mebibytes / 2)}` }
    return { command: [], env, by: 'watched' }
  }
}
