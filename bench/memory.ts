import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

const mebibyte = 1024 * 1024
const lookEveryMs = 25

/**
 * Resident memory of a process now and at its highest, bytes. Undefined where there is no /proc, or the process has
 * ended.
 */
export async function residentMemory(pid: number): Promise<{ now: number; highest: number } | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1])
  const [now, highest] = [kilobytes('VmRSS') * 1024, kilobytes('VmHWM') * 1024]
  return now > 0 && highest > 0 ? { now, highest } : undefined
}

/** Watches the resident memory of a process. Returns its largest growth and its highest value, bytes. */
export function watchMemory(pid: number) {
  let first: number | undefined
  let most = 0
  let highest = 0
  const look = async () => {
    const memory = await residentMemory(pid)
    if (!memory) return
    // The kernel remembers the highest value. If it has grown, the peak was between two looks.
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

/** How to start a process with bounded memory. */
export interface Bound {
  /** Words to put in front of the command of the process. */
  command: string[]
  /** Variables for its environment. */
  env: Record<string, string>
  /** `cgroup`: the kernel ends a process that wants more. `watched`: the caller has to watch its memory. */
  by: 'cgroup' | 'watched'
}

/**
 * Bounds memory with a cgroup where systemd makes one. Elsewhere the process gets the heap that Node would choose in
 * such a cgroup, which is half of its memory, and the caller has to watch the memory of the process. `ulimit -v` does
 * not work: it counts addresses, and V8 reserves gigabytes of them.
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
