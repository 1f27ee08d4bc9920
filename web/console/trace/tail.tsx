import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { EventRow } from '../answers.ts'
import { operate } from '../operate.ts'
import { Problem } from '../parts/shown.tsx'
import { repeat } from '../poll.ts'
import { count } from '../words.ts'
import { EventTable } from './event-table.tsx'

const everyMs = 2_000
/** Maximum number of events that the tail shows. */
const kept = 500

/** Shows events as the hub decides about them, the newest first. */
export function Tail({ args }: { args: Record<string, unknown> }) {
  const rows = useSignal<readonly EventRow[]>([])
  const leftOut = useSignal<number | null>(0)
  const problem = useSignal<string | undefined>(undefined)
  const isPaused = useSignal(false)
  const key = JSON.stringify(args)

  /** Where the tail goes on, also after a pause. */
  const after = useRef<number | undefined>(undefined)
  useEffect(() => {
    rows.value = []
    leftOut.value = 0
    after.current = undefined
  }, [key])
  useEffect(() => {
    if (isPaused.value) return
    return repeat(async () => {
      const answer = await operate(
        'events.tail',
        after.current === undefined ? args : { ...args, after: after.current },
      )
      return () => {
        problem.value = 'problem' in answer ? answer.problem : undefined
        if ('problem' in answer) return answer.retryAfter === undefined ? 2_000 : answer.retryAfter * 1000
        const { events, next, leftOut: missed } = answer.result
        after.current = next
        const known = new Set(rows.value.map(({ position }) => position))
        const newer = events.filter(({ position }) => !known.has(position)).reverse()
        if (newer.length > 0) rows.value = [...newer, ...rows.value].slice(0, kept)
        if (missed !== 0)
          leftOut.value = missed === null || leftOut.value === null ? null : leftOut.value + missed
        return everyMs
      }
    })
  }, [key, isPaused.value])

  return (
    <section class="panel" aria-labelledby="tail-title">
      <div class="section-head">
        <h2 id="tail-title">
          <span class={isPaused.value ? 'dot' : 'dot live'} aria-hidden="true" />
          {isPaused.value ? 'Paused' : 'Live'}
        </h2>
        <button
          type="button"
          aria-pressed={isPaused.value}
          onClick={() => {
            isPaused.value = !isPaused.value
          }}
        >
          {isPaused.value ? 'Go on' : 'Pause'}
        </button>
        {leftOut.value !== 0 && (
          <p class="notice" role="status">
            {leftOut.value === null
              ? 'Some events may be missing here: the node does not know how many. The search has them all.'
              : `${count(leftOut.value)} events were left out here: too many at once. The search has them all.`}
          </p>
        )}
      </div>
      <Problem text={problem.value} />
      <EventTable
        caption="Events as they are decided, the newest first"
        rows={rows.value}
        empty="Waiting for events. They appear here as soon as they are decided."
      />
    </section>
  )
}
