import { parentPort } from 'node:worker_threads'
import { compare, examine, restoreEarlier, restoreFeed, restoreFormer } from './examine.ts'

/* The thread that does what takes long with feeds (`beside.ts`): one task after the other. It keeps nothing. */

/** The tasks by name. */
export const tasks = { examine, compare, restoreFeed, restoreFormer, restoreEarlier }

export interface Task {
  id: number
  name: keyof typeof tasks
  input: unknown
}

export type Answer = { id: number; result: unknown } | { id: number; error: unknown }

parentPort?.on('message', ({ id, name, input }: Task) => parentPort?.postMessage(answer(id, name, input)))

function answer(id: number, name: Task['name'], input: unknown): Answer {
  try {
    // `beside` has checked the type of the input.
    const task = tasks[name] as (input: unknown) => unknown
    return { id, result: task(input) }
  } catch (error) {
    return { id, error }
  }
}
