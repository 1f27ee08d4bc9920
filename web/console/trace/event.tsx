import type { ShownEvent } from '../../../operations/events.ts'
import { Contact } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { Named } from '../parts/value.tsx'
import { useCommandAnswer } from '../poll.ts'
import { count } from '../words.ts'
import { deliveryState, deliveryTries, EventFrame, EventShown, LastTry } from './event-parts.tsx'
import { StagesBar } from './stages-bar.tsx'

/** Everything that is known of one event. */
export function EventPage({ id }: { id: string }) {
  const { value, problem } = useCommandAnswer('events.show', { id }, 5_000)
  const event = value.value
  return (
    <EventFrame id={id} href="/console/trace" list="Trace" problem={problem.value}>
      {event && <Shown event={event} />}
    </EventFrame>
  )
}

function Shown({ event }: { event: ShownEvent }) {
  const { institutionId, services, refusedServices = [], stages, deliveries } = event
  return (
    <EventShown
      event={event}
      warnings={event.report?.warnings ?? []}
      why="Why"
      report="Report to its publisher"
      facts={[
        ['Institution', institutionId && <Named view="institutions" id={institutionId} />],
        ['Livestreams', services.length > 0 && <Livestreams ids={services} />],
        ['Refused for', refusedServices.length > 0 && <Livestreams ids={refusedServices} />],
      ]}
      reached={
        <>
          <h2>On its way</h2>
          {stages ? (
            <>
              <StagesBar stages={stages} />
              <p class="muted">Accepted by {stages.node}.</p>
            </>
          ) : (
            <p class="muted">
              How long it took is not known any more: nodes remember their last events only.
            </p>
          )}
          <Table
            caption="Recipients"
            rows={event.nodes}
            keyOf={({ node }) => node}
            empty="No node answers."
            columns={[
              { title: 'Node', cell: ({ node }) => node },
              {
                title: 'Connected clients that got it',
                isNumber: true,
                cell: ({ recipients }) => (recipients === null ? 'not known any more' : count(recipients)),
              },
            ]}
          />
        </>
      }
      deliveries={deliveries.length > 0 && <Deliveries deliveries={deliveries} />}
    />
  )
}

function Livestreams({ ids }: { ids: readonly string[] }) {
  return (
    <ul>
      {ids.slice(0, 50).map((id) => (
        <li key={id}>
          <Named view="livestreams" id={id} />
        </li>
      ))}
      {ids.length > 50 && <li class="muted">and {count(ids.length - 50)} more</li>}
    </ul>
  )
}

function Deliveries({ deliveries }: Pick<ShownEvent, 'deliveries'>) {
  return (
    <section class="panel">
      <h2>Webhooks and plugin targets</h2>
      <Table
        caption="Deliveries"
        rows={deliveries}
        keyOf={({ queue }) => queue}
        empty=""
        columns={[
          deliveryState,
          {
            title: 'Target',
            cell: ({ queue, target }) => <Named view="webhooks" id={queue} name={target ?? queue} />,
          },
          deliveryTries,
          {
            title: 'Last',
            cell: ({ attempts, behind }) =>
              behind !== null ? (
                <>
                  waits behind <Named view="trace" id={behind} class="id" />
                </>
              ) : (
                <LastTry of={{ attempts }} />
              ),
          },
          {
            title: 'Contact',
            cell: ({ contact, target }) => <Contact address={contact} subject={`Webhook ${target}`} />,
          },
        ]}
      />
    </section>
  )
}
