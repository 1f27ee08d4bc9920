import type { OwnEvent } from '../../../operations/institution/refusals.ts'
import { Facts } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { useCommandAnswer } from '../poll.ts'
import { count } from '../words.ts'
import {
  deliveryState,
  deliveryTries,
  EventFrame,
  EventHead,
  Faults,
  identityOf,
  Json,
  LastTry,
  Sent,
  Topics,
} from './event-parts.tsx'
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
  const { errors, warnings, stages, refused, topics, receivers, published, report } = event
  return (
    <>
      <EventHead event={event} />
      <section class="panel">
        <Facts
          of={[
            ...identityOf(event),
            [
              'Sent by client',
              typeof report?.clientId === 'string' && <span class="id">{report.clientId}</span>,
            ],
            ['Creator', event.creator !== null && <span dir="auto">{event.creator}</span>],
          ]}
        />
      </section>
      <Faults why="Why it was refused" errors={errors} warnings={warnings} />
      {event.outcome === 'published' && !event.dryRun && (
        <section class="panel">
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
        </section>
      )}
      {topics.length > 0 && <Topics topics={topics} />}
      <Sent refused={refused} />
      {published && <Json title="Event as it was published" value={published} />}
      {report && <Json title="Report" value={report} />}
    </>
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
          cell: ({ queue, target }) => (
            <a href={`/console/own-subscriptions/${encodeURIComponent(queue)}`}>{target ?? queue}</a>
          ),
        },
        deliveryTries,
        { title: 'Last', cell: (one) => <LastTry of={one} /> },
      ]}
    />
  )
}
