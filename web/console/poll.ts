import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Results } from './answers.ts'
import { operate } from './operate.ts'
import type { OperationName } from './operations.ts'

/** The last answer of a command that only reads. */
export interface CommandAnswer<Result> {
  value: Signal<Result | undefined>
  /** Why the last request failed. `value` then keeps the former answer. */
  problem: Signal<string | undefined>
  /** Asks again now. */
  refresh: () => void
}

/** Shortest pause after a failed request, milliseconds. */
const againMs = 2_000

/**
 * Asks for a command's answer every `everyMs` milliseconds while component and page are visible. `everyMs` 0: once.
 * `args` null: never.
 */
export function useCommandAnswer<Name extends OperationName>(
  name: Name,
  args: Record<string, unknown> | null = {},
  everyMs = 0,
): CommandAnswer<Results[Name]> {
  const value = useSignal<Results[Name] | undefined>(undefined)
  const problem = useSignal<string | undefined>(undefined)
  const refresh = useRef(() => {})
  const key = JSON.stringify(args)
  useEffect(() => {
    value.value = undefined
    problem.value = undefined
    if (args === null) return
    return repeat(async () => {
      const answer = await operate(name, args)
      return () => {
        problem.value = 'problem' in answer ? answer.problem : undefined
        if ('result' in answer) value.value = answer.result
        if (!('problem' in answer)) return everyMs
        return answer.retryAfter === undefined ? Math.max(everyMs, againMs) : answer.retryAfter * 1000
      }
    }, refresh)
  }, [name, key, everyMs])
  return { value, problem, refresh: () => refresh.current() }
}

/**
 * Calls `ask` at once and then repeatedly, until the function that `repeat` returns is called. `ask` resolves with a
 * function that shows the outcome, and returns the milliseconds until the next call (0: none). `handle.current` calls
 * `ask` at once.
 */
export function repeat(
  ask: () => Promise<() => number>,
  handle: { current: () => void } = { current: () => {} },
): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isOver = false
  let isRunning = false
  let isWanted = false
  const seen = () => {
    if (isWanted && document.visibilityState === 'visible') void run()
  }
  handle.current = () => void run()
  document.addEventListener('visibilitychange', seen)
  void run()
  return () => {
    isOver = true
    clearTimeout(timer)
    document.removeEventListener('visibilitychange', seen)
  }

  async function run(): Promise<void> {
    clearTimeout(timer)
    isWanted = isRunning
    if (isRunning) return
    isRunning = true
    const show = await ask()
    isRunning = false
    if (isOver) return
    const dueMs = show()
    if (isWanted) return void run()
    if (dueMs === 0) return
    timer = setTimeout(() => {
      // A tab in the background asks again when it becomes visible.
      if (document.visibilityState === 'visible') void run()
      else isWanted = true
    }, dueMs)
  }
}
