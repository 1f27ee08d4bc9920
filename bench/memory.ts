import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

const mebibyte = 1024 * 1024
const lookEveryMs = 25

/** Resident memory of a process, bytes. Undefined: no /proc, or the process has ended. */
export async function residentMemory(pid: number): Promise<{ now: number; highest: number } | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1])
  const [now, highest] = [kilobytes('VmRSS') * 1024, kilobytes('VmHWM') * 1024]
  return now > 0 && highest > 0 ? { now, highest } : undefined
}

/** Watches the resident memory of a process. `end` returns its largest growth and its highest value, bytes. */
export function watchMemory(pid: number) {
  let first: number | undefined
  let most = 0
  let highest = 0
  const look = async () => {
    const memory = await residentMemory(pid)
    if (!memory) return
    // If the kernel's highest value has grown, the peak was between two calls of `look`.
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
  /** `cgroup`: the kernel ends a process that wants more. `heap`: only its heap is bounded. */
  by: 'cgroup' | 'heap'
}

/**
 * Bounds the memory of a process with a cgroup, if systemd can make one. Otherwise limits the heap of V8 to half of
 * `mebibytes`, as Node would in a cgroup. `ulimit -v` would not help: V8 reserves gigabytes of address space.
 */
export async function boundMemory(mebibytes: number): Promise<Bound> {
  const properties = ['-p', `MemoryMax=${mebibytes * mebibyte}`, '-p', 'MemorySwapMax=0']
  const command = ['systemd-run', '--scope', '--quiet', '--collect', ...properties, '--']
  try {
    await promisify(execFile)(command[0] ?? '', [...command.slice(1), 'true'])
    return { command, env: {}, by: 'cgroup' }
  } catch {
    const env = { NODE_OPTIONS: `--max-old-space-size=${Math.floor(mebibytes / 2)}` }
    return { command: [], env, by: 'heap' }
  }
}
