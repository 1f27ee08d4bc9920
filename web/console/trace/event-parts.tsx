import type { ComponentChildren } from 'preact'
import type { ErrorItem } from '../../../event/error.ts'
import type { ShownEvent } from '../../../operations/events.ts'
import type { OwnEvent } from '../../../operations/institution/refusals.ts'
import { now } from '../../page/clock.ts'
import { Badge, Facts, Head, Problem, type Tone, When } from '../parts/shown.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { amount, bytes, clockTime, dateAndTime, kindOf, ms, titleOf } from '../words.ts'
import { Errors } from './errors.tsx'
import { Outcome } from './outcome.tsx'

/* What the pages of an event have in common: that of operators, and that of its institution. */

/** The page around an event, which is not there yet or not found without `children`. `href`: the list it comes from. */
export function EventFrame(props: {
  id: string
  href: string
  list: string
  problem: string | undefined
  children: ComponentChildren
}) {
  const { id, href, list, problem, children } = props
  return (
    <>
      <p class="back">
        <a href={href}>{list}</a>
      </p>
      {children ?? <Head title={`Event ${id}`} />}
      <Problem text={problem} />
      {!children && problem === undefined && <p class="loading">Loading…</p>}
    </>
  )
}

/**
 * An event. `why`: the title of its errors. `report`: that of its report. `facts`: beside what identifies it. `reached`:
 * to whom a published one went.
 */
export function EventShown(props: {
  event: ShownEvent | OwnEvent
  warnings: readonly ErrorItem[]
  why: string
  report: string
  facts: [name: string, fact: ComponentChildren][]
  reached: ComponentChildren
  deliveries?: ComponentChildren
}) {
  const { event, warnings, why, facts, reached, deliveries } = props
  const { at, eventTime, playlistItemId, id, position, creator, errors, topics, published, report } = event
  return (
    <>
      <div class="view-head">
        <h1 dir="auto">{titleOf(event)}</h1>
        <Outcome row={event} />
      </div>
      <section class="panel">
        <Facts
          of={[
            ['Kind', kindOf(event.event)],
            ['Decided', dateAndTime(at)],
            ['Event time', eventTime && dateAndTime(eventTime)],
            ['playlistItemId', playlistItemId && <span class="id">{playlistItemId}</span>],
            ['Id', id && <span class="id">{id}</span>],
            ['Position', <span class="id">{position}</span>],
            ...facts,
            ['Creator', creator !== null && <span dir="auto">{creator}</span>],
          ]}
        />
      </section>
      {errors.length > 0 && (
        <section class="panel">
          <h2>{why}</h2>
          <Errors errors={errors} />
        </section>
      )}
      {warnings.length > 0 && (
        <section class="panel">
          <h2>Warnings</h2>
          <Errors errors={warnings} of="Warnings" />
        </section>
      )}
      {event.outcome === 'published' && !event.dryRun && <section class="panel">{reached}</section>}
      {topics.length > 0 && <Topics topics={topics} />}
      {deliveries}
      <Sent refused={event.refused} />
      {published && <Json title="Event as it was published" value={published} />}
      {report && <Json title={props.report} value={report} />}
    </>
  )
}

/** What was sent, where the hub has kept it. */
function Sent({ refused }: Pick<ShownEvent, 'refused'>) {
  if (!refused) return null
  return (
    <section class="panel">
      <h2>What was sent</h2>
      <p class="muted">
        {bytes(refused.bytes)}
        {refused.isWhole ? '' : ', the beginning'}
      </p>
      <pre dir="auto">{refused.text ?? refused.base64}</pre>
    </section>
  )
}

function Topics({ topics }: Pick<ShownEvent, 'topics'>) {
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

const deliveryTones: Readonly<Record<string, Tone>> = {
  delivered: 'good',
  settled: 'good',
  stale: 'plain',
  waiting: 'warn',
  retrying: 'warn',
  'dead letter': 'bad',
}

type Delivery = ShownEvent['deliveries'][number]

/** Columns of a table of deliveries: the state, the tries, and the last of them. */
export const deliveryState: Column<Pick<Delivery, 'state' | 'held'>> = {
  title: 'State',
  cell: ({ state, held }) => (
    <Badge tone={deliveryTones[state] ?? 'plain'}>{held === null ? state : `${state}, ${held}`}</Badge>
  ),
}
export const deliveryTries: Column<Pick<Delivery, 'attempts'>> = {
  title: 'Tries',
  isNumber: true,
  cell: ({ attempts }) => attempts.length,
}

export function LastTry({ of: { attempts } }: { of: Pick<Delivery, 'attempts'> }) {
  const [last] = attempts
  if (!last) return <>–</>
  return (
    <>
      {last.reason ?? `answered ${last.status} after ${ms(last.duration)}`} <When at={last.time} />
    </>
  )
}

function Json({ title, value }: { title: string; value: Record<string, unknown> }) {
  return (
    <details class="panel">
      <summary>
        {title} <span class="muted">({amount(Object.keys(value).length, 'field')})</span>
      </summary>
      <pre>{JSON.stringify(value, null, 2)}</pre>
    </details>
  )
}
