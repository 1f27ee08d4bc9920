import type { ShownEvent } from '../../../operations/events.ts'
import { now } from '../../page/clock.ts'
import { pathPart } from '../../page/location.ts'
import { institutionName, livestreamName } from '../livestream-names.ts'
import { Badge, Contact, Facts, Head, Problem, type Tone, When } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { useCommandAnswer } from '../poll.ts'
import { amount, bytes, clockTime, count, dateAndTime, kindOf, ms } from '../words.ts'
import { Errors } from './errors.tsx'
import { Outcome } from './outcome.tsx'
import { StagesBar } from './stages-bar.tsx'

/** Everything that is known of one event. */
export function EventPage({ id }: { id: string }) {
  const { value, problem } = useCommandAnswer('events.show', { id }, 5_000)
  const event = value.value
  return (
    <>
      <p class="back">
        <a href="/console/trace">Trace</a>
      </p>
      {event ? <Shown event={event} /> : <Head title={`Event ${id}`} />}
      <Problem text={problem.value} />
      {!event && problem.value === undefined && <p class="loading">Loading…</p>}
    </>
  )
}

function Shown({ event }: { event: ShownEvent }) {
  const { errors, stages, refused, topics, deliveries, published, report } = event
  const { warnings = [] } = report ?? {}
  const called = [event.title ?? event.name ?? kindOf(event.event), event.artist].filter(Boolean).join(' – ')
  return (
    <>
      <div class="view-head">
        <h1 dir="auto">{called}</h1>
        <Outcome row={event} />
      </div>
      <section class="panel">
        <Facts
          of={[
            ['Kind', kindOf(event.event)],
            ['Decided', `${dateAndTime(event.at)}`],
            ['Event time', event.eventTime && dateAndTime(event.eventTime)],
            ['playlistItemId', event.playlistItemId && <span class="id">{event.playlistItemId}</span>],
            ['Id', event.id && <span class="id">{event.id}</span>],
            ['Position', <span class="id">{event.position}</span>],
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
      {errors.length > 0 && (
        <section class="panel">
          <h2>Why</h2>
          <Errors errors={errors} />
        </section>
      )}
      {warnings.length > 0 && (
        <section class="panel">
          <h2>Warnings</h2>
          <Errors errors={warnings} of="Warnings" />
        </section>
      )}
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
      {refused && (
        <section class="panel">
          <h2>What was sent</h2>
          <p class="muted">
            {bytes(refused.bytes)}
            {refused.isWhole ? '' : ', the beginning'}
          </p>
          <pre dir="auto">{refused.text ?? refused.base64}</pre>
        </section>
      )}
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

export function Topics({ topics }: Pick<ShownEvent, 'topics'>) {
  return (
    <section class="panel">
      <h2>Where it went</h2>
      <Table
        caption="Topics"
        rows={topics}
        keyOf={({ topic, position }) => `${topic} ${position}`}
        empty=""
        columns={[
          { title: 'Topic', cell: ({ topic }) => <span class="id">{topic}</span> },
          {
            title: 'On air',
            cell: ({ retained, newer, validUntil }) =>
              retained ? (
                <Badge tone="good">new subscribers get it</Badge>
              ) : newer ? (
                `no: a newer event came before it${newer.title === null ? '' : `, “${newer.title}”`}${newer.eventTime === null ? '' : ` of ${clockTime(newer.eventTime)}`}`
              ) : (
                `not any more${overSince(validUntil)}`
              ),
          },
          { title: 'Position', isNumber: true, cell: ({ position }) => position },
        ]}
      />
    </section>
  )
}

function overSince(validUntil: string | null): string {
  const isOver = validUntil !== null && Date.parse(validUntil) <= now()
  return isOver ? `: valid until ${clockTime(validUntil)}` : ''
}

export const deliveryTones: Readonly<Record<string, Tone>> = {
  delivered: 'good',
  settled: 'good',
  waiting: 'warn',
  retrying: 'warn',
  'dead letter': 'bad',
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
          {
            title: 'State',
            cell: ({ state, held }) => (
              <Badge tone={deliveryTones[state] ?? 'plain'}>
                {held === null ? state : `${state}, ${held}`}
              </Badge>
            ),
          },
          {
            title: 'Target',
            cell: ({ queue, target }) => (
              <a href={`/console/webhooks/${encodeURIComponent(queue)}`}>{target ?? queue}</a>
            ),
          },
          { title: 'Tries', isNumber: true, cell: ({ attempts }) => attempts.length },
          {
            title: 'Last',
            cell: ({ attempts: [last], behind }) =>
              behind !== null ? (
                <>
                  waits behind{' '}
                  <a href={`/console/trace/${encodeURIComponent(behind)}`} class="id">
                    {behind}
                  </a>
                </>
              ) : last ? (
                <>
                  {last.reason ?? `answered ${last.status} after ${ms(last.duration)}`}{' '}
                  <When at={last.time} />
                </>
              ) : (
                '–'
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

export function Json({ title, value }: { title: string; value: Record<string, unknown> }) {
  return (
    <details class="panel">
      <summary>
        {title} <span class="muted">({amount(Object.keys(value).length, 'field')})</span>
      </summary>
      <pre>{JSON.stringify(value, null, 2)}</pre>
    </details>
  )
}
