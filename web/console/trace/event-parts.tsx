import type { ComponentChildren } from 'preact'
import type { ShownEvent } from '../../../operations/events.ts'
import { now } from '../../page/clock.ts'
import { Badge, Head, Problem, type Tone, When } from '../parts/shown.tsx'
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

export function EventHead({
  event,
}: {
  event: Parameters<typeof titleOf>[0] & Parameters<typeof Outcome>[0]['row']
}) {
  return (
    <div class="view-head">
      <h1 dir="auto">{titleOf(event)}</h1>
      <Outcome row={event} />
    </div>
  )
}

/** What identifies an event, for `Facts`. */
export function identityOf(
  event: Pick<ShownEvent, 'event' | 'at' | 'eventTime' | 'playlistItemId' | 'id' | 'position'>,
): [name: string, fact: ComponentChildren][] {
  return [
    ['Kind', kindOf(event.event)],
    ['Decided', dateAndTime(event.at)],
    ['Event time', event.eventTime && dateAndTime(event.eventTime)],
    ['playlistItemId', event.playlistItemId && <span class="id">{event.playlistItemId}</span>],
    ['Id', event.id && <span class="id">{event.id}</span>],
    ['Position', <span class="id">{event.position}</span>],
  ]
}

/** Why an event was refused, and what is probably wrong with it. `why`: the title of the first. */
export function Faults(props: {
  why: string
  errors: Parameters<typeof Errors>[0]['errors']
  warnings: Parameters<typeof Errors>[0]['errors']
}) {
  const { why, errors, warnings } = props
  return (
    <>
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
    </>
  )
}

/** What was sent, where the hub has kept it. */
export function Sent({ refused }: Pick<ShownEvent, 'refused'>) {
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
