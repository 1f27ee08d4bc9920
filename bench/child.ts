import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { basename, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isCompiled } from '../test/root.ts'
import type { FileCoverage } from './coverage.ts'
import { spawnUntilEnd } from './ending.ts'

/** The functions of a process that its parent process can call, by name (`answer.ts`). */
export type Commands = Record<string, (args: never) => unknown>

/** The CPU time a process has used, milliseconds, and its resident memory, bytes. */
export interface Usage {
  cpuMs: number
  bytes: number
}

/** Node options for TypeScript. Tests run compiled files and need none. */
const loader = isCompiled ? [] : [`--import=${import.meta.resolve('tsx')}`]
/** Node options that load `usage.ts` before a program. The bench can then ask the program for its usage. */
export const askable = [...loader, `--import=${pathOf('usage.ts')}`]

/** Node options for a CPU profile in .prof, if BENCH_PROFILE names the program (`server`, `crowd`, …). */
export function profiling(program: string): string[] {
  const wanted = process.env.BENCH_PROFILE?.split(',').includes(program)
  return wanted ? ['--cpu-prof', `--cpu-prof-dir=${resolve('.prof')}`] : []
}

let lastId = 0

/** Starts a program of the bench in a new process. `command`: words to put in front of its command. */
export async function startChild<Asked extends Commands>(
  program: string,
  { v8Options = [], command = [] }: { v8Options?: readonly string[]; command?: readonly string[] } = {},
) {
  const options = [...v8Options, ...loader, ...profiling(basename(program, '.ts'))]
  const [first = '', ...words] = [...command, process.execPath, ...options, pathOf(program)]
  const child = spawnUntilEnd(first, words, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // JSON, the default, would turn Infinity into null.
    serialization: 'advanced',
  })
  const ask = asker<Asked>(child)
  return {
    ask,
    pid: child.pid ?? 0,
    usage: usageOf(child),
    async stop(): Promise<void> {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.disconnect()
      await exited
    },
  }
}

/** Path of a program of the bench. */
function pathOf(program: string): string {
  const file = isCompiled ? program.replace(/ts$/, 'js') : program
  return fileURLToPath(new URL(file, import.meta.url))
}

/** Returns a function that calls commands of a process. The process must run `answer`. */
export function asker<Asked extends Commands>(child: ChildProcess) {
  const open = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>()
  child.on('message', (message: { id: number; result?: unknown; error?: string }) => {
    const waiting = open.get(message.id)
    open.delete(message.id)
    if (message.error === undefined) waiting?.resolve(message.result)
    else waiting?.reject(new Error(message.error))
  })
  child.on('exit', (code, signal) => {
    for (const { reject } of open.values())
      reject(new Error(`a process of the bench ended: ${code ?? signal}`))
    open.clear()
  })
  return <Name extends keyof Asked & string>(
    name: Name,
    args: Parameters<Asked[Name]>[0],
  ): Promise<Awaited<ReturnType<Asked[Name]>>> =>
    new Promise((resolve, reject) => {
      const id = ++lastId
      open.set(id, { resolve: (result) => resolve(result as Awaited<ReturnType<Asked[Name]>>), reject })
      child.send({ id, name, args })
    })
}

/** Returns a function that asks a process for its usage. The process must run `answer` or be started with `askable`. */
export function usageOf(child: ChildProcess): (of?: { collected: boolean }) => Promise<Usage> {
  const ask = asker<{ usage: (args: object) => Usage }>(child)
  return (of = { collected: false }) => ask('usage', of)
}

/** Counts how often each function of a process runs. The process must be started with `askable`. */
export function countingOf(child: ChildProcess) {
  const ask = asker<{ startCounting: (args: object) => void; takeCounts: (args: object) => FileCoverage[] }>(
    child,
  )
  return { start: () => ask('startCounting', {}), take: () => ask('takeCounts', {}) }
}
