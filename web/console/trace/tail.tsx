import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { ListedEvent } from '../../../operations/events.ts'
import { now } from '../../page/clock.ts'
import { operate } from '../operate.ts'
import { Problem } from '../parts/shown.tsx'
import { repeat } from '../poll.ts'
import { amount, clockTime } from '../words.ts'
import { EventTable } from './event-table.tsx'

const everyMs = 2_000
/** Maximum number of events that the tail shows. */
const kept = 500

/** Shows events as the hub decides about them, the newest first. */
export function Tail({ args }: { args: Record<string, unknown> }) {
  const rows = useSignal<readonly ListedEvent[] | undefined>(undefined)
  const leftOut = useSignal<number | null>(0)
  /** When events were last left out, ISO 8601. */
  const leftOutAt = useSignal('')
  const problem = useSignal<string | undefined>(undefined)
  const isPaused = useSignal(false)
  const key = JSON.stringify(args)

  /** Where the tail goes on, also after a pause. */
  const after = useRef<number | undefined>(undefined)
  useEffect(() => {
    rows.value = undefined
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
        if ('problem' in answer) return answer.waitMs ?? everyMs
        const { events, next, leftOut: missed } = answer.result
        after.current = next
        const known = new Set((rows.value ?? []).map(({ position }) => position))
        const newer = events.filter(({ position }) => !known.has(position)).reverse()
        if (newer.length > 0 || !rows.value) rows.value = [...newer, ...(rows.value ?? [])].slice(0, kept)
        if (missed !== 0) {
          leftOut.value = missed === null || leftOut.value === null ? null : leftOut.value + missed
          leftOutAt.value = new Date(now()).toISOString()
        }
        return everyMs
      }
    })
  }, [key, isPaused.value])

  const state = isPaused.value ? 'Paused' : problem.value === undefined ? 'Live' : 'Interrupted'
  return (
    <section class="panel" aria-labelledby="tail-title">
      <div class="section-head">
        <h2 id="tail-title">
          <span class={state === 'Live' ? 'dot live' : 'dot'} aria-hidden="true" />
          {state}
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
              : `${amount(leftOut.value, 'event')} left out here, the last at ${clockTime(leftOutAt.value)}: too many at once. The search has them all.`}
          </p>
        )}
      </div>
      <Problem text={problem.value} />
      <EventTable
        caption="Events as they are decided, the newest first"
        rows={rows.value ?? (isPaused.value ? [] : undefined)}
        empty={
          isPaused.value
            ? 'The tail is paused.'
            : 'Waiting for events. They appear here as soon as they are decided.'
        }
      />
    </section>
  )
}
