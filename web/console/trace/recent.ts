import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { ListedEvent } from '../../../operations/events.ts'
import type { Result } from '../../../operations/operations.ts'
import { now } from '../../page/clock.ts'
import { type Operated, operate } from '../operate.ts'
import { repeat } from '../poll.ts'

const everyMs = 5_000

/** Maximum number of pages that are read at first. An empty page may have a next page. */
const mostPages = 10
/**
 * A request asks for the events after the newest event on the page. If the page shows no event, the request asks for
 * the events since the last successful request began, and for those of the `overlapMs` milliseconds before that.
 */
const overlapMs = 60_000

/**
 * The last events of a livestream or institution, the newest first, at most `most`. `isCut`: the hub may keep older
 * events, which the page has not read.
 */
export function useRecent(
  args: Record<string, unknown>,
  most: number,
): {
  events: Signal<readonly ListedEvent[] | undefined>
  isCut: Signal<boolean>
  problem: Signal<string | undefined>
} {
  const events = useSignal<readonly ListedEvent[] | undefined>(undefined)
  const isCut = useSignal(false)
  const problem = useSignal<string | undefined>(undefined)
  const key = JSON.stringify(args)
  useEffect(() => {
    events.value = undefined
    problem.value = undefined
    let askedAt = 0
    return repeat(async () => {
      const [newest] = events.peek() ?? []
      const isFirst = events.peek() === undefined
      const since = newest ? newest.position + 1 : new Date(askedAt - overlapMs).toISOString()
      const startedAt = now()
      const answer = await (isFirst
        ? listPages(args, most)
        : operate('events.list', { ...args, since, limit: most }))
      return () => {
        problem.value = 'problem' in answer ? answer.problem : undefined
        if ('problem' in answer) return answer.waitMs ?? everyMs
        askedAt = startedAt
        const { events: newer, next } = answer.result
        if (isFirst) isCut.value = next !== null
        // If the answer is incomplete, events are missing between the earlier and the newer ones. The page then drops
        // the earlier events.
        const earlier = next === null || newer.length === 0 ? (events.peek() ?? []) : []
        if (newer.length > 0 || events.peek() === undefined)
          events.value = [...newer, ...earlier].slice(0, most)
        return everyMs
      }
    })
  }, [key])
  return { events, isCut, problem }
}

/** Reads pages until there are `most` events, or no more. */
async function listPages(
  args: Record<string, unknown>,
  most: number,
): Promise<Operated<Result<'events.list'>>> {
  const events: ListedEvent[] = []
  let next: number | null = null
  for (let pages = 0; pages < mostPages; pages++) {
    const answer: Operated<Result<'events.list'>> = await operate('events.list', {
      ...args,
      limit: most,
      ...(next !== null && { before: next }),
    })
    if ('problem' in answer) return answer
    events.push(...answer.result.events)
    next = answer.result.next
    if (next === null || events.length >= most) break
  }
  return { result: { events: events.slice(0, most), next } }
}
