import { eventKinds } from '../../event/kind.ts'
import { shortName } from '../../event/kinds/class-row.ts'
import { Type } from '../../event/type.ts'
import {
  type Checked,
  type ListedEvent,
  listedEvent,
  type ShownEvent,
  type Stages,
} from '../../operations/events.ts'
import type { ShownAttempt } from '../../operations/queues.ts'
import type { ByHand } from '../command.ts'
import { fits } from '../known-answer.ts'
import type { Printer } from '../print.ts'
import { localTime } from '../time/local-time.ts'

/** What became of events, and what would. */
export const events: ByHand = {
  'events.list': {
    print: ({ events }, printer) => printer.list(events.map(withResult), eventColumns, 'No events.'),
    json: ({ events }) => events,
    warning: ({ next }) => (next === null ? undefined : `there may be more: --before ${next} goes on`),
  },
  'events.show': { print: printEvent },
  'events.tail': {
    summary: 'events as they are decided, on whichever node; --json prints one value per line',
    line(value, printer) {
      if (fits(listedEvent, value)) return printer.line(tailOf(value))
      if (fits(gap, value)) return printer.warning(`${value.leftOut} events left out: too many at once`)
      return printer.properties(value)
    },
  },
  'events.slow': {
    print: (slowest, printer) =>
      printer.list(
        slowest.map((event) => ({ ...rounded(event), kind: shortName(event.event) })),
        ['written', 'stored', 'decided', 'at', ['EVENT', 'kind'], 'node', 'id'],
        'No event was published in the last hour, or since this node was started.',
      ),
  },
  check: { print: printCheck, succeeded: ({ outcome }) => outcome === 'published' },
}

/** A line of `events tail` about events that were too many. */
const gap = Type.Object({ leftOut: Type.Number() })

const eventColumns = [
  'position',
  'at',
  ['OUTCOME', 'result'],
  ['EVENT', 'kind'],
  ['LIVESTREAM', 'where'],
  ['ITEM', 'playlistItemId'],
  ['TITLE', 'called'],
  'artist',
  'eventTime',
  'id',
  'why',
] as const

const tailColumns = [
  ['at', 29],
  ['result', 18],
  ['kind', Math.max(14, ...eventKinds.map(({ name }) => shortName(name).length))],
  ['playlistItemId', 12],
  ['what', 40],
  ['why', 0],
] as const

const topicColumns = ['position', 'topic', 'retained'] as const
const nodeColumns = ['node', 'recipients'] as const
const stageColumns = [['ACCEPTED BY', 'node'], ['MS UNTIL DECIDED', 'decided'], 'stored', 'written'] as const
const deliveryColumns = [
  ['WEBHOOK OR TARGET', 'queue'],
  'state',
  'tries',
  'last',
  'contact',
  ['URL', 'target'],
] as const
const errorColumns = ['path', ['CODE', 'errorCode'], 'message'] as const
const warningColumns = ['path', ['WARNING', 'errorCode'], 'message'] as const

function printEvent(result: ShownEvent, printer: Printer): string {
  const { refusedServices, creator, report, errors, refused, topics, published, nodes, stages } = result
  const known = withResult(result)
  const fields = [
    'at',
    'result',
    'id',
    'position',
    'event',
    'institutionId',
    'services',
    ...(refusedServices?.length ? ['refusedServices' as const] : []),
    'playlistItemId',
    'name',
    'title',
    'artist',
    'eventTime',
  ] as const
  const shown = Object.fromEntries(fields.map((name) => [name, known[name]]))
  const warnings = report?.warnings ?? []
  const deliveries = result.deliveries.map((delivery) => ({
    ...delivery,
    state: stateOf(delivery),
    tries: delivery.attempts.length,
    last: lastOf(delivery.attempts[0]),
  }))
  const sections = [
    printer.properties(creator === null ? shown : { ...shown, creator }),
    errors.length > 0 && printer.list(errors, errorColumns, ''),
    warnings.length > 0 && printer.list(warnings, warningColumns, ''),
    refused !== null && printer.properties({ refused }),
    topics.length > 0 && printer.list(topics, topicColumns, ''),
    ...topics.map((topic) => whyNotShown(topic, printer)),
    published !== null && printer.list(nodes, nodeColumns, 'No node answers.'),
    stages !== null && printer.list([rounded(stages)], stageColumns, ''),
    deliveries.length > 0 && printer.list(deliveries, deliveryColumns, ''),
  ]
  return sections.filter((section) => section !== false).join('\n\n')
}

function whyNotShown(
  { topic, newer, retained, validUntil }: ShownEvent['topics'][number],
  printer: Printer,
): string | false {
  const isOver = !retained && validUntil !== null && Date.parse(validUntil) <= Date.now()
  if (isOver) {
    const until = localTime(validUntil)
    return printer.sentence('Not shown on {topic} any more: valid until {until}.', { topic, until })
  }
  if (newer === null) return false
  const { id, title, eventTime } = newer
  const which = [id, ...(title === null ? [] : [`"${title}"`]), `of ${localTime(eventTime)}`].join(' ')
  return printer.sentence('Not shown on {topic}: a newer event came before it, {which}.', { topic, which })
}

/** An event with the further fields that tables show. */
function withResult<Row extends ListedEvent>(row: Row) {
  const { outcome, dryRun, isRepetition, event, title, artist, name, services, errors } = row
  const refusedFor = row.refusedServices ?? []
  const reasons = [...new Set(errors.map(({ errorCode, path }) => `${errorCode} ${path}`))]
  const isPartly = outcome === 'published' && errors.length > 0
  return {
    ...row,
    result: `${outcome}${dryRun ? ', dry run' : ''}${isPartly ? ' in part' : ''}${isRepetition ? ', again' : ''}`,
    kind: event && shortName(event),
    called: title ?? name,
    what: [title ?? name, artist].filter((part) => part !== null).join(' – '),
    where: `${firstOf(services)}${refusedFor.length > 0 ? `, not ${firstOf(refusedFor)}` : ''}`,
    // A table has a line for each event; `events show` has all reasons.
    why: reasons.length > 3 ? [...reasons.slice(0, 3), `and ${reasons.length - 3} more`] : reasons,
  }
}

/** One line of `events tail`: its values, each with the width of its column. */
function tailOf(event: ListedEvent): (readonly [value: unknown, width: number])[] {
  const known = withResult(event)
  return tailColumns.map(([name, width]) => [name === 'at' ? localTime(known.at) : known[name], width])
}

function firstOf(services: readonly string[]): string {
  return `${services[0] ?? '-'}${services.length > 1 ? ` and ${services.length - 1} more` : ''}`
}

/** `held`: why the queue stands still. `behind`: the event that the delivery waits for. */
function stateOf({ state, held, behind }: ShownEvent['deliveries'][number]): string {
  return `${state}${held === null ? '' : `, ${held}`}${behind === null ? '' : ` behind ${behind}`}`
}

function lastOf(attempt: ShownAttempt | undefined): string | undefined {
  return attempt && `${localTime(attempt.time)} ${attempt.reason ?? `answered ${attempt.status}`}`
}

/** Rounds the milliseconds to hundredths. */
function rounded<Event extends Stages>(event: Event): Event {
  const [decided, stored, written] = [event.decided, event.stored, event.written].map(
    (ms) => Math.round(ms * 100) / 100,
  )
  return { ...event, decided, stored, written }
}

function printCheck(
  { outcome, event, eventTime, services, errors, warnings }: Checked,
  printer: Printer,
): string {
  return [
    printer.properties({ outcome, event, eventTime, services }),
    printer.list(errors, errorColumns, 'No errors.'),
    ...(warnings ? [printer.list(warnings, warningColumns, '')] : []),
  ].join('\n\n')
}
