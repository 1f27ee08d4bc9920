import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { EventRow } from '../answers.ts'
import { operate } from '../operate.ts'
import { repeat } from '../poll.ts'

const everyMs = 5_000

/**
 * The last events of a livestream or institution, the newest first, at most `most`. The page asks for all of them once,
 * and then only for newer events.
 */
export function useRecent(
  args: Record<string, unknown>,
  most: number,
): { events: Signal<readonly EventRow[] | undefined>; problem: Signal<string | undefined> } {
  const events = useSignal<readonly EventRow[] | undefined>(undefined)
  const problem = useSignal<string | undefined>(undefined)
  const key = JSON.stringify(args)
  useEffect(() => {
    events.value = undefined
    problem.value = undefined
    return repeat(async () => {
      const [newest] = events.peek() ?? []
      const since = newest === undefined ? {} : { since: newest.position + 1 }
      const answer = await operate('events.list', { ...args, ...since, limit: most })
      return () => {
        problem.value = 'problem' in answer ? answer.problem : undefined
        if ('problem' in answer) return answer.retryAfter === undefined ? everyMs : answer.retryAfter * 1000
        const { events: newer, next } = answer.result
        // If one answer does not hold all newer events, some are missing between them and the earlier events. The page
        // then drops the earlier events.
        const earlier = next === null ? (events.peek() ?? []) : []
        if (newer.length > 0 || events.peek() === undefined)
          events.value = [...newer, ...earlier].slice(0, most)
        return everyMs
      }
    })
  }, [key])
  return { events, problem }
}
