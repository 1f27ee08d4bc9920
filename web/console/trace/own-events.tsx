import { signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { ListedOwnEvent } from '../../../operations/institution/refusals.ts'
import type { CommandResult } from '../commands.ts'
import { livestreamName } from '../livestream-names.ts'
import { operate } from '../operate.ts'
import { set, type Typed } from '../parts/form.tsx'
import { Head, None, Problem } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { useCommandAnswer } from '../poll.ts'
import { clockTime, count, dateAndTime, titleOf } from '../words.ts'
import { Outcome } from './outcome.tsx'

const chosen: Typed = signal({})
const everyMs = 10_000

/** The refusals and warnings of a week, each with what mends it. */
export function OwnRefusals() {
  const { only = '' } = chosen.value
  return (
    <>
      <Head title="Refusals" />
      <Listed
        command="institution.refusals.list"
        view="own-refusals"
        caption="What was refused or warned of, newest first"
        empty="Nothing was refused or warned of within a week."
        only={only}
        isGrouped
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
      />
    </>
  )
}

/** The events of a week, whatever became of them. */
export function OwnEvents() {
  return (
    <>
      <Head title="Events" />
      <Listed
        command="institution.events.list"
        view="own-events"
        caption="All events, newest first"
        empty="No event came within a week."
      />
    </>
  )
}

type List = 'institution.refusals.list' | 'institution.events.list'

function Listed(props: {
  command: List
  view: string
  caption: string
  empty: string
  only?: string
  /** Rows that say the same are one. */
  isGrouped?: boolean
  tools?: ComponentChildren
}) {
  const { command, view, caption, empty, only = '', isGrouped = false, tools } = props
  const args = only === '' ? {} : { only }
  const { value, problem } = useCommandAnswer(command, args, everyMs)
  /** The pages behind the first, of what is chosen. */
  const more = useSignal<(CommandResult<List> & { only: string }) | undefined>(undefined)
  const trouble = useSignal<string | undefined>(undefined)
  const first = value.value
  const behind = more.value?.only === only ? more.value : undefined
  const older = behind?.events ?? []
  const next = (behind ?? first)?.next ?? null
  const events = first && [...first.events, ...older.filter(({ position }) => !holds(first.events, position))]

  async function showMore(): Promise<void> {
    const answer = await operate(command, { ...args, before: next })
    trouble.value = 'problem' in answer ? answer.problem : undefined
    if ('result' in answer)
      more.value = { only, events: [...older, ...answer.result.events], next: answer.result.next }
  }

  return (
    <section class="panel">
      <Problem text={problem.value ?? trouble.value} />
      <Table
        caption={caption}
        rows={isGrouped ? events && grouped(events) : events?.map(alone)}
        keyOf={({ position }) => String(position)}
        textOf={(row) => JSON.stringify(row)}
        tools={tools}
        empty={empty}
        columns={[
          {
            title: 'When',
            cell: ({ at, times, since }) => (
              <>
                <time dateTime={at} title={dateAndTime(at)}>
                  {clockTime(at)}
                </time>
                {times > 1 && (
                  <small class="below">
                    {count(times)} times since {clockTime(since)}
                  </small>
                )}
              </>
            ),
          },
          { title: 'Outcome', cell: (row) => <Outcome row={row} /> },
          {
            title: 'Event',
            cell: (row) => (
              <a href={`/console/${view}/${nameOf(row)}`} class="what" dir="auto">
                {titleOf(row)}
              </a>
            ),
          },
          { title: 'Livestream', cell: (row) => <Livestreams of={row} /> },
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

/** An event, and how many listed ones say the same. `since`: when the first of them came, ISO 8601. */
type Row = ListedOwnEvent & { times: number; since: string }

function alone(event: ListedOwnEvent): Row {
  return { ...event, times: 1, since: event.at }
}

/** The newest of all events that differ in nothing that their row says but the time. `events`: the newest first. */
function grouped(events: readonly ListedOwnEvent[]): Row[] {
  const rows = new Map<string, Row>()
  for (const event of events) {
    const { outcome, services, refusedServices, errors, warnings } = event
    const said = JSON.stringify([titleOf(event), outcome, services, refusedServices, errors, warnings])
    const newer = rows.get(said)
    if (newer) rows.set(said, { ...newer, times: newer.times + 1, since: event.at })
    else rows.set(said, alone(event))
  }
  return [...rows.values()]
}

function holds(events: readonly ListedOwnEvent[], position: number): boolean {
  return events.some((one) => one.position === position)
}

/** The name by which an event is shown: its id, or its position where it has none. */
function nameOf({ id, outcome, position }: ListedOwnEvent): string {
  return encodeURIComponent(outcome === 'published' && id !== null ? id : String(position))
}

/** The first livestreams of an event. */
function Livestreams({ of: { services, refusedServices = [] } }: { of: ListedOwnEvent }) {
  const all = [...services, ...refusedServices]
  if (all.length === 0) return <None />
  return (
    <span class="lines">
      {all.slice(0, 3).map((one) => (
        <span key={one} title={one} dir="auto">
          {livestreamName(one)}
        </span>
      ))}
      {all.length > 3 && <span class="muted">and {all.length - 3} more</span>}
    </span>
  )
}

/** The first errors and warnings of an event. */
function Faults({ of: { errors, warnings } }: { of: ListedOwnEvent }) {
  const all = [...errors, ...warnings]
  if (all.length === 0) return <None />
  return (
    <ul class="lines">
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
