import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Results } from './answers.ts'
import { operate } from './operate.ts'
import type { OperationName } from './operations.ts'

/** What a command that only reads answered last. */
export interface Asked<Result> {
  value: Signal<Result | undefined>
  /** Why it was not answered the last time; what was answered before stays. */
  problem: Signal<string | undefined>
  /** Asks again now. */
  refresh: () => void
}

/** When the node does not answer, milliseconds. */
const againMs = 2_000

/** Asks as long as the component is there, every so many milliseconds, and not while nobody looks; 0: once. */
export function useAsked<Name extends OperationName>(
  name: Name,
  args: Record<string, unknown> | null = {},
  everyMs = 0,
): Asked<Results[Name]> {
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
 * Does something now and again after each of its turns. A turn ends with a function that shows what came of it, and says
 * after how many milliseconds the next one is due; 0: none. Returns how to end it.
 */
export function repeat(
  turn: () => Promise<() => number>,
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
    const show = await turn()
    isRunning = false
    if (isOver) return
    const dueMs = show()
    if (isWanted) return void run()
    if (dueMs === 0) return
    timer = setTimeout(() => {
      // A tab in the background asks again when somebody looks.
      if (document.visibilityState === 'visible') void run()
      else isWanted = true
    }, dueMs)
  }
}
