import { parentPort } from 'node:worker_threads'
import { compare, examine, type GoodFeed, restoreFeed, restoreFormer } from './examine.ts'

/* The thread that does what takes long with feeds (`worker.ts`): one task after the other. It keeps nothing. */

/** The tasks by name. */
export const tasks = { examine, compare, restoreFeed, restoreFormer }

export interface Task {
  name: keyof typeof tasks
  input: unknown
}

export type ThreadResult = { result: unknown } | { error: unknown }

parentPort?.on('message', (task: Task) => {
  const answered = answer(task)
  parentPort?.postMessage(answered, memoryOf(answered))
})

/** What the store is to keep is handed over: a copy of megabytes would take the thread of events milliseconds. */
function memoryOf(answered: ThreadResult): ArrayBuffer[] {
  const good = 'result' in answered ? Object(answered.result).good : undefined
  const { feed, former }: Partial<GoodFeed['stored']> = good?.stored ?? {}
  return [feed, former].flatMap((bytes) => (bytes?.buffer instanceof ArrayBuffer ? [bytes.buffer] : []))
}

function answer({ name, input }: Task): ThreadResult {
  try {
    // `inWorker` has checked the type of the input.
    const task = tasks[name] as (input: unknown) => unknown
    return { result: task(input) }
  } catch (error) {
    return { error }
  }
}
