import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { CommandName, CommandResult } from './commands.ts'
import { lastChange, operate } from './operate.ts'

/** The last answer of a command that only reads. */
export interface CommandAnswer<Result> {
  value: Signal<Result | undefined>
  /** Why the last request failed. `value` then keeps the former answer. */
  problem: Signal<string | undefined>
}

/** Shortest and longest pause after a failed request, milliseconds: the view must not say for longer that it failed. */
const againMs = { least: 2_000, most: 10_000 }

/**
 * Asks for the answer of a command every `everyMs` milliseconds, and when a command has changed something. Stops when
 * the component is removed, and pauses while the page is hidden.
 *
 * - `everyMs` 0: asks once, and again only after a failure.
 * - `args` null: never asks.
 */
export function useCommandAnswer<Name extends CommandName>(
  name: Name,
  args: Record<string, unknown> | null = {},
  everyMs = 0,
): CommandAnswer<CommandResult<Name>> {
  const value = useSignal<CommandResult<Name> | undefined>(undefined)
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
        return answer.waitMs ?? Math.min(Math.max(everyMs, againMs.least), againMs.most)
      }
    }, refresh)
  }, [name, key, everyMs])
  useAfterChange(() => refresh.current())
  return { value, problem }
}

/** Calls `changed` after each command that changed something. */
export function useAfterChange(changed: (name: CommandName) => void): void {
  const change = lastChange.value
  const known = useRef(change)
  useEffect(() => {
    if (change === undefined || change === known.current) return
    known.current = change
    changed(change.name)
  }, [change])
}

/**
 * Calls `ask` at once, and then repeatedly. `ask` resolves with a function that shows the outcome. That function
 * returns the milliseconds until the next call (0: no further call). `handle.current` calls `ask` at once.
 *
 * `repeat` returns a function that ends the calls.
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
