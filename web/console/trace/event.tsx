import type { ShownEvent } from '../../../operations/events.ts'
import { pathPart } from '../../page/location.ts'
import { institutionName, livestreamName } from '../livestream-names.ts'
import { Contact, Facts } from '../parts/shown.tsx'
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
  const { errors, stages, refused, topics, deliveries, published, report } = event
  const { warnings = [] } = report ?? {}
  return (
    <>
      <EventHead event={event} />
      <section class="panel">
        <Facts
          of={[
            ...identityOf(event),
            [
              'Institution',
              event.institutionId && (
                <a
                  href={`/console/institutions/${pathPart(event.institutionId)}`}
                  title={event.institutionId}
                  dir="auto"
                >
                  {institutionName(event.institutionId)}
                </a>
              ),
            ],
            ['Livestreams', event.services.length > 0 && <Livestreams ids={event.services} />],
            [
              'Refused for',
              (event.refusedServices ?? []).length > 0 && <Livestreams ids={event.refusedServices ?? []} />,
            ],
            ['Creator', event.creator !== null && <span dir="auto">{event.creator}</span>],
          ]}
        />
      </section>
      <Faults why="Why" errors={errors} warnings={warnings} />
      {event.outcome === 'published' && !event.dryRun && (
        <section class="panel">
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
        </section>
      )}
      {topics.length > 0 && <Topics topics={topics} />}
      {deliveries.length > 0 && <Deliveries deliveries={deliveries} />}
      <Sent refused={refused} />
      {published && <Json title="Event as it was published" value={published} />}
      {report && <Json title="Report to its publisher" value={report} />}
    </>
  )
}

function Livestreams({ ids }: { ids: readonly string[] }) {
  return (
    <ul>
      {ids.slice(0, 50).map((id) => (
        <li key={id}>
          <a href={`/console/livestreams/${pathPart(id)}`} title={id} dir="auto">
            {livestreamName(id)}
          </a>
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
            cell: ({ queue, target }) => (
              <a href={`/console/webhooks/${encodeURIComponent(queue)}`}>{target ?? queue}</a>
            ),
          },
          deliveryTries,
          {
            title: 'Last',
            cell: ({ attempts, behind }) =>
              behind !== null ? (
                <>
                  waits behind{' '}
                  <a href={`/console/trace/${encodeURIComponent(behind)}`} class="id">
                    {behind}
                  </a>
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
