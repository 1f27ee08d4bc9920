import type { OwnEvent } from '../../../operations/institution/refusals.ts'
import { Facts } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { Named } from '../parts/value.tsx'
import { useCommandAnswer } from '../poll.ts'
import { count } from '../words.ts'
import { deliveryState, deliveryTries, EventFrame, EventShown, LastTry } from './event-parts.tsx'
import { StagesBar } from './stages-bar.tsx'

/** What the hub made of an event of the user's institution. */
export function OwnEventPage({ id, view }: { id: string; view: 'own-refusals' | 'own-events' }) {
  const { value, problem } = useCommandAnswer('institution.events.show', { id }, 5_000)
  const event = value.value
  return (
    <EventFrame
      id={id}
      href={`/console/${view}`}
      list={view === 'own-events' ? 'Events' : 'Refusals'}
      problem={problem.value}
    >
      {event && <Shown event={event} />}
    </EventFrame>
  )
}

function Shown({ event }: { event: OwnEvent }) {
  const { warnings, stages, receivers, report } = event
  return (
    <EventShown
      event={event}
      warnings={warnings}
      why="Why it was refused"
      report="Report"
      facts={[
        ['Sent by client', typeof report?.clientId === 'string' && <span class="id">{report.clientId}</span>],
      ]}
      reached={
        <>
          <h2>Who got it</h2>
          {stages && <StagesBar stages={stages} withBudget={false} />}
          <Facts
            of={[
              [
                'Connected clients',
                receivers.clients === null ? 'not known any more' : count(receivers.clients),
              ],
              ['Webhooks of others, and plugin targets', count(receivers.others)],
            ]}
          />
          {receivers.webhooks && <Webhooks of={receivers.webhooks} />}
        </>
      }
    />
  )
}

function Webhooks({ of: webhooks }: { of: NonNullable<OwnEvent['receivers']['webhooks']> }) {
  return (
    <Table
      caption="Your webhooks"
      rows={webhooks}
      keyOf={({ queue }) => queue}
      empty="No webhook of yours gets it."
      columns={[
        deliveryState,
        {
          title: 'Your webhook',
          cell: ({ queue, target }) => <Named view="own-subscriptions" id={queue} name={target ?? queue} />,
        },
        deliveryTries,
        { title: 'Last', cell: (one) => <LastTry of={one} /> },
      ]}
    />
  )
}
