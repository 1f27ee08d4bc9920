import type { ListedEvent } from '../../../operations/events.ts'
import { None } from '../parts/shown.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { Named } from '../parts/value.tsx'
import { clockTime, dateAndTime, kindOf, titleOf } from '../words.ts'
import { Outcome } from './outcome.tsx'

/** Path of the page for an event: by id if it was published, else by position. */
function pathOfEvent({ id, position, outcome, dryRun }: ListedEvent): string {
  const name = id !== null && outcome === 'published' && !dryRun ? id : String(position)
  return `/console/trace/${encodeURIComponent(name)}`
}

const columns: readonly Column<ListedEvent>[] = [
  {
    title: 'Decided',
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
      <a href={pathOfEvent(row)} class="what" dir="auto">
        {titleOf(row)}
      </a>
    ),
  },
  { title: 'Kind', cell: ({ event }) => <span class="kind">{kindOf(event)}</span> },
  {
    title: 'Livestream',
    cell: ({ services, refusedServices = [] }) => {
      const [first = refusedServices[0]] = services
      const others = services.length + refusedServices.length - 1
      if (first === undefined) return <None />
      return (
        <>
          <Named view="livestreams" id={first} />
          {others > 0 && <span class="muted"> and {others} more</span>}
        </>
      )
    },
  },
  {
    title: 'Item',
    cell: ({ playlistItemId }) => (playlistItemId ? <span class="id">{playlistItemId}</span> : <None />),
  },
  {
    title: 'Why',
    cell: ({ errors }) =>
      errors.length > 0 ? (
        <span class="id">{[...new Set(errors.map(({ errorCode }) => errorCode))].join(', ')}</span>
      ) : (
        <None />
      ),
  },
]

/** A table with one row for each event. */
export function EventTable(props: {
  caption: string
  rows: readonly ListedEvent[] | undefined
  empty: string
}) {
  return <Table {...props} columns={columns} keyOf={({ position }) => String(position)} />
}
