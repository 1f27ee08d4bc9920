import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { ListedEvent } from '../../../operations/events.ts'
import { operate } from '../operate.ts'
import { Problem } from '../parts/shown.tsx'
import { amount, clockTime } from '../words.ts'
import { EventTable } from './event-table.tsx'

/** Number of events that one search finds before it stops. */
const wanted = 50
/** Maximum number of pages that one search reads: a search may find nothing. */
const mostPages = 40

/** Searches past events, from the newest backwards. */
export function Search(props: {
  args: Record<string, unknown>
  /** The number of the search: another number searches anew, also with the same terms. */
  nth: number
}) {
  const { args, nth } = props
  const rows = useSignal<readonly ListedEvent[]>([])
  const next = useSignal<number | null | undefined>(undefined)
  const isBusy = useSignal(true)
  const problem = useSignal<string | undefined>(undefined)
  const reached = useSignal<string | undefined>(undefined)
  const key = JSON.stringify(args)
  /** Number of the present run: an older run stops. */
  const run = useRef(0)

  useEffect(() => {
    rows.value = []
    next.value = undefined
    reached.value = undefined
    void read()
    return () => {
      run.current++
    }
  }, [key, nth])

  async function read(): Promise<void> {
    const own = ++run.current
    isBusy.value = true
    problem.value = undefined
    const goal = rows.value.length + wanted
    for (let pages = 0; pages < mostPages && rows.value.length < goal && next.value !== null; pages++) {
      const before = next.value
      const answer = await operate('events.list', {
        ...args,
        limit: wanted,
        ...(before !== undefined && { before }),
      })
      if (run.current !== own) return
      if ('problem' in answer && answer.waitMs !== undefined) {
        await new Promise((resolve) => setTimeout(resolve, answer.waitMs))
        if (run.current !== own) return
        continue
      }
      if ('problem' in answer) {
        problem.value = answer.problem
        break
      }
      rows.value = [...rows.value, ...answer.result.events]
      next.value = answer.result.next
      reached.value = answer.result.events.at(-1)?.at ?? reached.value
    }
    isBusy.value = false
  }

  const isWithinTimes = args.since !== undefined || args.before !== undefined
  const all = isWithinTimes ? ', that is all' : ', that is all that is kept'
  return (
    <section class="panel" aria-labelledby="search-title">
      <div class="section-head">
        <h2 id="search-title">Found</h2>
        <p class="muted" role="status">
          {isBusy.value
            ? 'Searching…'
            : `${amount(rows.value.length, 'event')}${next.value === null ? all : ''}`}
        </p>
      </div>
      <Problem text={problem.value} />
      <EventTable
        caption="Events that were found, the newest first"
        rows={isBusy.value && rows.value.length === 0 ? undefined : rows.value}
        empty="Nothing was found."
      />
      {next.value !== null && next.value !== undefined && !isBusy.value && (
        <button type="button" class="more" onClick={() => void read()}>
          Search further back{reached.value === undefined ? '' : ` than ${clockTime(reached.value)}`}
        </button>
      )}
    </section>
  )
}
