import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { nodeOptions } from '../../node-options.ts'
import type { FileContent } from '../../outputs/output.ts'
import type { FileResult, FileTask } from './file-program.ts'

/** So many folders may fail to answer at once, and others still get their files. */
const threads = 64
const heapMb = 64

/**
 * Writes files in a process of its own, which starts with the first one. A folder that does not answer, such as one on
 * a network, keeps a thread of the process that asks, and the store needs the few threads of the hub.
 */
export function createFileProcess() {
  let child: ChildProcess | undefined
  let lastId = 0
  /** The tasks of which the process has not said the end, by their files. */
  const open = new Map<string, { id: number; settle: (error?: Error) => void }>()

  return {
    /**
     * Replaces a file. Rejects with the reason of `signal` when it aborts. The process may go on: until its end, further
     * contents of the file are refused.
     */
    replace({ file, content }: FileContent, signal: AbortSignal): Promise<void> {
      return new Promise((resolve, reject) => {
        if (open.has(file)) return reject(new Error('the folder has not answered yet'))
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        const task: FileTask = { id: ++lastId, file, content }
        open.set(file, { id: task.id, settle: (error) => (error ? reject(error) : resolve()) })
        child ??= start()
        child.send(task)
      })
    },

    /** Ends the process, whatever it waits for. */
    close(): void {
      child?.kill('SIGKILL')
    },
  }

  function start(): ChildProcess {
    const started = fork(program, {
      execArgv: nodeOptions(heapMb),
      env: { UV_THREADPOOL_SIZE: String(threads) },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    started.on('message', ({ id, error }: FileResult) => {
      const found = [...open].find(([, task]) => task.id === id)
      if (!found) return
      const [file, { settle }] = found
      open.delete(file)
      settle(error === null ? undefined : new Error(error))
    })
    const ended = (why: string) => {
      if (child !== started) return
      child = undefined
      for (const [file, { settle }] of open) {
        open.delete(file)
        settle(new Error(`the process that writes files ended: ${why}`))
      }
    }
    // Also when it cannot be started, or its channel breaks.
    started.on('error', ({ message }) => ended(message))
    started.on('exit', (code, signal) => ended(signal ?? `exit code ${code}`))
    // A node that ends waits for nothing here.
    started.unref()
    started.channel?.unref()
    return started
  }
}

/** The program of the process: TypeScript where the hub runs from its sources. */
const program = fileURLToPath(
  new URL(`./file-program${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)
