import { SHARE_ENV, Worker } from 'node:worker_threads'
import { FeedRefused, refuse } from './refusals.ts'
import type { Task, ThreadResult, tasks } from './thread.ts'

type Tasks = typeof tasks

/** Bounds of a task: a feed is from outside, and may be made to take long. */
const bounds = { heapMb: 768, youngMb: 3, timeoutMs: 60_000 }
/** A thread without tasks ends after this time, and gives its memory back: a feed changes rarely. Milliseconds. */
const idleMs = 10_000

/** The thread of this process, while there is one. Never two: each may take all the memory of `bounds`. */
let thread: Worker | undefined
let idle: NodeJS.Timeout | undefined
/** Resolves when the thread is free for the next task, or is gone. */
let free: Promise<unknown> = Promise.resolve()

/**
 * Does a task on a feed in a thread of its own, after all tasks before it, so that no event waits for it. Rejects with
 * what the task throws, with a `FeedRefused` if it takes too much memory or time, and with the reason of `closing`.
 */
export async function inWorker<Name extends keyof Tasks>(
  name: Name,
  input: Parameters<Tasks[Name]>[0],
  closing?: AbortSignal,
): Promise<ReturnType<Tasks[Name]>> {
  closing?.throwIfAborted()
  const task = inTurn(() => run({ name, input }, closing))
  const aborted = closing && abortOf(closing)
  try {
    // The thread answers with what the task of this name returns.
    return (await Promise.race([task, ...(aborted ? [aborted.promise] : [])])) as ReturnType<Tasks[Name]>
  } finally {
    aborted?.forget()
  }
}

function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  const done = free.then(work)
  free = done.catch(() => undefined)
  return done
}

/** Does a task. A thread that fails, or takes too long, is gone when this rejects. */
async function run(task: Task, closing: AbortSignal | undefined): Promise<unknown> {
  closing?.throwIfAborted()
  clearTimeout(idle)
  thread ??= startThread()
  const worker = thread
  // A task under way keeps the process alive, an idle thread does not.
  worker.ref()
  const answer = await answerOf(worker, task).catch(async (error: unknown) => {
    await endThread()
    throw error
  })
  worker.unref()
  idle = setTimeout(() => void inTurn(endThread), idleMs).unref()
  if ('error' in answer) throw answer.error
  return answer.result
}

function startThread(): Worker {
  const worker = new Worker(entry(), {
    eval: isSource,
    execArgv: [],
    env: SHARE_ENV,
    // A livestream is packed and forgotten at once: young objects are nearly all garbage, and may take little.
    resourceLimits: { maxOldGenerationSizeMb: bounds.heapMb, maxYoungGenerationSizeMb: bounds.youngMb },
  })
  // The task under way hears of it too.
  worker.on('error', () => undefined)
  worker.on('exit', () => {
    if (thread === worker) thread = undefined
  })
  return worker
}

async function endThread(): Promise<void> {
  const ending = thread
  thread = undefined
  await ending?.terminate()
}

function answerOf(worker: Worker, task: Task): Promise<ThreadResult> {
  let forget = () => {}
  return new Promise<ThreadResult>((resolve, reject) => {
    const failed = (error: Error) =>
      reject('code' in error && error.code === outOfMemory ? tooMuchMemory() : error)
    const ended = () => reject(new Error('the thread that reads feeds ended'))
    const timer = setTimeout(() => reject(tooMuchTime()), bounds.timeoutMs).unref()
    forget = () => {
      clearTimeout(timer)
      worker.off('message', resolve).off('error', failed).off('exit', ended)
    }
    worker.once('message', resolve).once('error', failed).once('exit', ended)
    worker.postMessage(task)
  }).finally(() => forget())
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
