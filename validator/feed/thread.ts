import { parentPort } from 'node:worker_threads'
import { compare, examine, restoreEarlier, restoreFeed, restoreFormer } from './examine.ts'

/* The thread that does what takes long with feeds (`beside.ts`): one task after the other. It keeps nothing. */

/** The tasks by name. */
export const tasks = { examine, compare, restoreFeed, restoreFormer, restoreEarlier }

export interface Task {
  name: keyof typeof tasks
  input: unknown
}

export type Answer = { result: unknown } | { error: unknown }

parentPort?.on('message', (task: Task) => parentPort?.postMessage(answer(task)))

function answer({ name, input }: Task): Answer {
  try {
    // `beside` has checked the type of the input.
    const task = tasks[name] as (input: unknown) => unknown
    return { result: task(input) }
  } catch (error) {
    return { error }
  }
}
