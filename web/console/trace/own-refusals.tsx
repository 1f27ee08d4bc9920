import { signal, useSignal } from '@preact/signals'
import type { RefusedEvent } from '../../../operations/institution/refusals.ts'
import type { CommandResult } from '../commands.ts'
import { livestreamName } from '../livestream-names.ts'
import { operate } from '../operate.ts'
import { set, type Typed } from '../parts/form.tsx'
import { Head, None, Problem } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { useCommandAnswer } from '../poll.ts'
import { clockTime, dateAndTime, titleOf } from '../words.ts'
import { Outcome } from './outcome.tsx'

const chosen: Typed = signal({})
const everyMs = 10_000

/** The refusals and warnings of a week, each with what mends it. */
export function OwnRefusals() {
  const { only = '' } = chosen.value
  return (
    <>
      <Head title="Refusals" />
      <Listed only={only} />
    </>
  )
}

function Listed({ only }: { only: string }) {
  const args = only === '' ? {} : { only }
  const { value, problem } = useCommandAnswer('institution.refusals.list', args, everyMs)
  /** The pages behind the first, of what is chosen. */
  const more = useSignal<(CommandResult<'institution.refusals.list'> & { only: string }) | undefined>(
    undefined,
  )
  const trouble = useSignal<string | undefined>(undefined)
  const first = value.value
  const behind = more.value?.only === only ? more.value : undefined
  const older = behind?.events ?? []
  const next = (behind ?? first)?.next ?? null

  async function showMore(): Promise<void> {
    const answer = await operate('institution.refusals.list', { ...args, before: next })
    trouble.value = 'problem' in answer ? answer.problem : undefined
    if ('result' in answer)
      more.value = { only, events: [...older, ...answer.result.events], next: answer.result.next }
  }

  return (
    <section class="panel">
      <Problem text={problem.value ?? trouble.value} />
      <Table
        caption="What was refused or warned of, newest first"
        rows={first && [...first.events, ...older.filter(({ position }) => !holds(first.events, position))]}
        keyOf={({ position }) => String(position)}
        textOf={(row) => JSON.stringify(row)}
        tools={
          <select
            aria-label="Which are listed"
            value={only}
            onChange={({ currentTarget }) => set(chosen, 'only', currentTarget.value)}
          >
            <option value="">Refusals and warnings</option>
            <option value="refused">Refusals</option>
            <option value="warned">Warnings</option>
          </select>
        }
        empty="Nothing was refused or warned of within a week."
        columns={[
          {
            title: 'When',
            cell: ({ at }) => (
              <time dateTime={at} title={dateAndTime(at)}>
                {clockTime(at)}
              </time>
            ),
          },
          { title: 'Outcome', cell: (row) => <Outcome row={row} /> },
          {
            title: 'Event',
            cell: (row) => (
              <a href={`/console/own-refusals/${nameOf(row)}`} class="what" dir="auto">
                {titleOf(row)}
              </a>
            ),
          },
          { title: 'Livestream', cell: (row) => <Livestream of={row} /> },
          { title: 'What is wrong, and what mends it', cell: (row) => <Faults of={row} /> },
        ]}
      />
      {next !== null && (
        <button type="button" class="more" onClick={() => void showMore()}>
          Older ones
        </button>
      )}
    </section>
  )
}

function holds(events: readonly RefusedEvent[], position: number): boolean {
  return events.some((one) => one.position === position)
}

/** The name by which an event is shown: its id, or its position where it has none. */
function nameOf({ id, outcome, position }: RefusedEvent): string {
  return encodeURIComponent(outcome === 'published' && id !== null ? id : String(position))
}

function Livestream({ of: { services, refusedServices = [] } }: { of: RefusedEvent }) {
  const [first = refusedServices[0]] = services
  if (first === undefined) return <None />
  return (
    <span title={first} dir="auto">
      {livestreamName(first)}
    </span>
  )
}

/** The first errors and warnings of an event. */
function Faults({ of: { errors, warnings } }: { of: RefusedEvent }) {
  const all = [...errors, ...warnings]
  return (
    <ul class="several">
      {all.slice(0, 3).map(({ path, message, errorCode, remedy }) => (
        <li key={`${path} ${errorCode} ${message}`}>
          <code>{path}</code> {message}
          {remedy && <small class="below">{remedy}</small>}
        </li>
      ))}
      {all.length > 3 && <li class="muted">and {all.length - 3} more</li>}
    </ul>
  )
}
