import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { ListedEvent } from '../../../operations/events.ts'
import { institutionName, livestreamName, livestreams, livestreamsProblem } from '../livestream-names.ts'
import { CommandButton } from '../parts/command.tsx'
import { Badge, Contact, Facts, Head, Problem, When } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { Named, State } from '../parts/value.tsx'
import { useCommandAnswer } from '../poll.ts'
import { EventTable } from '../trace/event-table.tsx'
import { useRecent } from '../trace/recent.ts'
import { amount, bytes, count } from '../words.ts'
import { LivestreamTable } from './livestreams.tsx'

const everyMs = 5_000
const subscriptionsEveryMs = 15_000
/** The page counts the errors in this many of the newest events. */
const recent = 200

/** One livestream: its retained messages, its last events, and its webhooks. */
export function LivestreamPage({ id }: { id: string }) {
  const livestream = livestreams.value?.find((one) => one.id === id || one.externalId === id)
  const key = livestream?.id ?? id
  return (
    <>
      <Head back={['/console/livestreams', 'Livestreams']} title={livestreamName(id)} />
      <Recent args={{ livestream: key }}>
        {livestream ? (
          <Facts
            of={[
              ['Institution', <Named view="institutions" id={livestream.institution.id} />],
              ['Publisher', livestream.publisher.title],
              ['External id', <span class="id">{livestream.externalId}</span>],
              ['Id', <span class="id">{livestream.id}</span>],
            ]}
          />
        ) : (
          <p class="muted">
            {livestreams.value
              ? 'The livestream feed does not list it.'
              : (livestreamsProblem.value ?? 'Loading the livestream feed…')}
          </p>
        )}
      </Recent>
      {livestream && <Subscribers id={key} />}
      <Retained id={key} />
      <Subscriptions id={key} />
    </>
  )
}

/** One institution: its last events with their errors, and its livestreams. */
export function InstitutionPage({ id }: { id: string }) {
  return (
    <>
      <Head back={['/console/livestreams', 'Livestreams']} title={institutionName(id)} />
      <Recent args={{ institution: id }}>
        <Facts of={[['Id', <span class="id">{id}</span>]]} />
      </Recent>
      <section class="panel">
        <h2>Its livestreams</h2>
        <Problem text={livestreams.value === undefined ? livestreamsProblem.value : undefined} />
        <LivestreamTable institution={id} empty="The feed lists none of this institution." />
      </section>
    </>
  )
}

/** The last events, and their errors by code. */
function Recent({ args, children }: { args: Record<string, unknown>; children: ComponentChildren }) {
  const { events: rows, isCut, problem } = useRecent(args, recent)
  const events = rows.value
  const [last] = events ?? []
  const codes = codesOf(events ?? [])
  return (
    <>
      <section class="panel">
        {children}
        {events && (
          <Facts
            of={[
              [
                'Last event',
                last ? (
                  <When at={last.at} />
                ) : isCut.value ? (
                  'none among the newest of its institution'
                ) : (
                  'none that is kept'
                ),
              ],
              [
                `Wrong with the last ${count(events.length)} events`,
                codes.length === 0 ? (
                  <Badge tone="good">nothing</Badge>
                ) : (
                  <ul>
                    {codes.map(([code, number]) => (
                      <li key={code}>
                        {count(number)} × <code>{code}</code>
                      </li>
                    ))}
                  </ul>
                ),
              ],
            ]}
          />
        )}
      </section>
      <Problem text={problem.value} />
      {(events || problem.value === undefined) && <LastEvents events={events} isCut={isCut.value} />}
    </>
  )
}

function LastEvents({ events, isCut }: { events: readonly ListedEvent[] | undefined; isCut: boolean }) {
  const isRefusedOnly = useSignal(false)
  const refused = events?.filter(({ errors }) => errors.length > 0)
  return (
    <section class="panel">
      <div class="section-head">
        <h2>Last events</h2>
        <button
          type="button"
          aria-pressed={isRefusedOnly.value}
          onClick={() => {
            isRefusedOnly.value = !isRefusedOnly.value
          }}
        >
          Only what was wrong ({count(refused?.length ?? 0)})
        </button>
      </div>
      <EventTable
        caption="Last events, the newest first"
        rows={(isRefusedOnly.value ? refused : events)?.slice(0, isRefusedOnly.value ? recent : 25)}
        empty={isCut ? 'None among the newest events. The trace searches further back.' : 'None.'}
      />
    </section>
  )
}

function codesOf(events: readonly ListedEvent[]): [code: string, count: number][] {
  const counts = new Map<string, number>()
  for (const { errorCode } of events.flatMap(({ errors }) => errors)) {
    counts.set(errorCode, (counts.get(errorCode) ?? 0) + 1)
  }
  return [...counts].toSorted(([, a], [, b]) => b - a)
}

/** How many MQTT clients subscribe to the livestream. How many people listen, nobody here can know. */
function Subscribers({ id }: { id: string }) {
  const { value, problem } = useCommandAnswer('clients.count', { livestream: id }, everyMs)
  const [counted] = value.value ?? []
  return (
    <section class="panel">
      <h2>Subscribers</h2>
      <Problem text={problem.value} />
      {counted && (
        <p>
          {amount(counted.subscribers, 'connected client')} to this livestream, and{' '}
          {amount(counted.ofAll, 'client')} to all of them.
        </p>
      )}
    </section>
  )
}

/** The retained messages, which new subscribers get. */
function Retained({ id }: { id: string }) {
  const { value, problem } = useCommandAnswer('retained.list', { filter: `radio/${id}/#` }, everyMs)
  return (
    <section class="panel">
      <h2>On air</h2>
      <Problem text={problem.value} />
      <Table
        caption="Retained messages"
        rows={value.value}
        keyOf={({ topic }) => topic}
        empty="Nothing is retained."
        columns={[
          {
            title: 'Topic',
            cell: ({ topic }) => <span class="id">{topic.replace(/^radio\/[^/]+\//, '')}</span>,
          },
          { title: 'Event time', cell: ({ eventTime }) => <When at={eventTime} /> },
          { title: 'Ends', cell: ({ expires }) => <When at={expires} /> },
          { title: 'Size', isNumber: true, cell: (row) => bytes(row.bytes) },
          {
            title: 'Payload',
            cell: ({ payload }) => (
              <details class="inline">
                <summary>show</summary>
                <pre>{payload.slice(0, 20_000)}</pre>
              </details>
            ),
          },
          {
            title: 'Actions',
            isUntitled: true,
            cell: (row) => <CommandButton name="retained.clear" row={row} />,
          },
        ]}
      />
    </section>
  )
}

function Subscriptions({ id }: { id: string }) {
  const { value, problem } = useCommandAnswer('subscriptions.list', { livestream: id }, subscriptionsEveryMs)
  if ((value.value ?? []).length === 0) return <Problem text={problem.value} />
  return (
    <section class="panel">
      <h2>Webhooks</h2>
      <Table
        caption="Webhooks"
        rows={value.value}
        keyOf={({ name }) => name}
        empty="None."
        columns={[
          { title: 'State', cell: (one) => <State of={one.state} /> },
          {
            title: 'Target',
            cell: ({ name, url }) => <Named view="webhooks" id={name} name={url} />,
          },
          {
            title: 'Whom to write to',
            cell: ({ contact, url }) => <Contact address={contact} subject={`Webhook ${url}`} />,
          },
          { title: 'Waiting', isNumber: true, cell: ({ pending }) => count(pending) },
          { title: 'Dead letters', isNumber: true, cell: ({ deadLetters }) => count(deadLetters) },
        ]}
      />
    </section>
  )
}
