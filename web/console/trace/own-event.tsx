import type { OwnEvent } from '../../../operations/institution/refusals.ts'
import { Badge, Facts, Head, Problem, When } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { useCommandAnswer } from '../poll.ts'
import { bytes, count, dateAndTime, kindOf, ms } from '../words.ts'
import { Errors } from './errors.tsx'
import { deliveryTones, Json, Topics } from './event.tsx'
import { Outcome } from './outcome.tsx'
import { StagesBar } from './stages-bar.tsx'

/** What the hub made of an event of the user's institution. */
export function OwnEventPage({ id }: { id: string }) {
  const { value, problem } = useCommandAnswer('institution.events.show', { id }, 5_000)
  const event = value.value
  return (
    <>
      <p class="back">
        <a href="/console/own-refusals">Refusals</a>
      </p>
      {event ? <Shown event={event} /> : <Head title={`Event ${id}`} />}
      <Problem text={problem.value} />
      {!event && problem.value === undefined && <p class="loading">Loading…</p>}
    </>
  )
}

function Shown({ event }: { event: OwnEvent }) {
  const { errors, warnings, stages, refused, topics, receivers, published, report } = event
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
            ['Decided', dateAndTime(event.at)],
            ['Event time', event.eventTime && dateAndTime(event.eventTime)],
            ['playlistItemId', event.playlistItemId && <span class="id">{event.playlistItemId}</span>],
            ['Id', event.id && <span class="id">{event.id}</span>],
            ['Position', <span class="id">{event.position}</span>],
            ['Creator', event.creator !== null && <span dir="auto">{event.creator}</span>],
          ]}
        />
      </section>
      {errors.length > 0 && (
        <section class="panel">
          <h2>Why it was refused</h2>
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
          <h2>Who got it</h2>
          {stages && <StagesBar stages={stages} />}
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
        {
          title: 'State',
          cell: ({ state, held }) => (
            <Badge tone={deliveryTones[state] ?? 'plain'}>
              {held === null ? state : `${state}, ${held}`}
            </Badge>
          ),
        },
        {
          title: 'Your webhook',
          cell: ({ queue, target }) => (
            <a href={`/console/own-subscriptions/${encodeURIComponent(queue)}`}>{target ?? queue}</a>
          ),
        },
        { title: 'Tries', isNumber: true, cell: ({ attempts }) => attempts.length },
        {
          title: 'Last',
          cell: ({ attempts: [last] }) =>
            last ? (
              <>
                {last.reason ?? `answered ${last.status} after ${ms(last.duration)}`} <When at={last.time} />
              </>
            ) : (
              '–'
            ),
        },
      ]}
    />
  )
}
