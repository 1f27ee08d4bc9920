import { SHARE_ENV, Worker } from 'node:worker_threads'
import { FeedRefused, refuse } from './refusals.ts'
import type { Answer, Task, tasks } from './thread.ts'

type Tasks = typeof tasks

/** Bounds of a task: a feed is from outside, and may be made to take long. */
const bounds = { heapMb: 768, timeoutMs: 60_000 }
/** A thread without tasks ends after this time, and gives its memory back: a feed changes rarely. Milliseconds. */
const idleMs = 10_000

/** The thread of this process, while there is one. */
let running: Thread | undefined

/**
 * Does a task on a feed in a thread of its own, so that no event waits for it. Rejects with what the task throws, with a
 * `FeedRefused` if it takes too much memory or time, and with the reason of `closing`.
 */
export async function beside<Name extends keyof Tasks>(
  name: Name,
  input: Parameters<Tasks[Name]>[0],
  closing?: AbortSignal,
): Promise<ReturnType<Tasks[Name]>> {
  closing?.throwIfAborted()
  running ??= startThread(() => {
    running = undefined
  })
  const answer = running.ask({ name, input })
  const aborted = closing && abortOf(closing)
  try {
    // The thread answers with what the task of this name returns.
    return (await Promise.race([answer, ...(aborted ? [aborted.promise] : [])])) as ReturnType<Tasks[Name]>
  } finally {
    aborted?.forget()
  }
}

type Thread = ReturnType<typeof startThread>

/** Starts the thread. It does one task after the other. `ended`: it takes no more tasks. */
function startThread(ended: () => void) {
  const worker = new Worker(entry(), {
    ...{ eval: isSource, execArgv: [], env: SHARE_ENV },
    resourceLimits: { maxOldGenerationSizeMb: bounds.heapMb },
  })
  const waiting = new Map<number, { settle(answer: Answer): void; fail(error: Error): void }>()
  let last = 0
  let idle: NodeJS.Timeout | undefined
  worker.unref()
  worker.on('message', (answer: Answer) => waiting.get(answer.id)?.settle(answer))
  worker.on('error', (error) => end('code' in error && error.code === outOfMemory ? tooMuchMemory() : error))
  worker.on('exit', () => end(new Error('the thread that reads feeds ended')))

  return {
    ask(task: Omit<Task, 'id'>): Promise<unknown> {
      const id = ++last
      clearTimeout(idle)
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => end(tooMuchTime()), bounds.timeoutMs).unref()
        const done = () => {
          clearTimeout(timer)
          waiting.delete(id)
          if (waiting.size === 0) idle = setTimeout(end, idleMs, new Error('idle')).unref()
        }
        waiting.set(id, {
          settle(answer) {
            done()
            if ('error' in answer) reject(answer.error)
            else resolve(answer.result)
          },
          fail(error) {
            done()
            reject(error)
          },
        })
        // A task under way keeps the process alive, an idle thread does not.
        worker.ref()
        worker.postMessage({ ...task, id } satisfies Task)
      }).finally(() => {
        if (waiting.size === 0) worker.unref()
      })
    },
  }

  function end(error: Error): void {
    ended()
    for (const { fail } of [...waiting.values()]) fail(error)
    clearTimeout(idle)
    void worker.terminate()
  }
}

const outOfMemory = 'ERR_WORKER_OUT_OF_MEMORY'

function tooMuchMemory(): FeedRefused {
  return new FeedRefused(refuse('unfinished', `checking it took more than ${bounds.heapMb} MiB of memory`))
}

function tooMuchTime(): FeedRefused {
  return new FeedRefused(refuse('unfinished', `checking it took more than ${bounds.timeoutMs / 1000} s`))
}

/** In the repository the code is TypeScript. Node 20 loads it in a thread only if the thread registers `tsx` itself. */
const isSource = import.meta.url.endsWith('.ts')

function entry(): URL | string {
  if (!isSource) return new URL('./thread.js', import.meta.url)
  const [tsx, thread] = [import.meta.resolve('tsx/esm/api'), new URL('./thread.ts', import.meta.url).href]
  return `import(${JSON.stringify(tsx)}).then(({ register }) => { register(); return import(${JSON.stringify(thread)}) })`
}

function abortOf(signal: AbortSignal): { promise: Promise<never>; forget(): void } {
  let stop = () => {}
  const promise = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop)
  })
  return { promise, forget: () => signal.removeEventListener('abort', stop) }
}
