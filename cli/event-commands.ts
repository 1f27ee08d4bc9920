import { checkInstitution } from '../acl/permissions.ts'
import { eventKinds } from '../event/kind.ts'
import { shortName } from '../event/kinds/class.ts'
import { type ListedEvent, listedEvent, type ShownEvent, type Stages } from '../operations/events.ts'
import type { ShownAttempt } from '../operations/queues.ts'
import { type Command, filtersOf, type Input, usage } from './command.ts'
import { fits } from './known-answer.ts'
import { type Printer, valueAt } from './print.ts'
import { instantForms, instantOf, passedInstantOf } from './time/instant.ts'
import { localTime } from './time/local-time.ts'

/** The outcomes that the node knows. */
const outcomes = ['published', 'blocked', 'invalid', 'failed', 'refused', 'dry-run']
const maxLimit = 1_000

const whose = [
  { flags: '--livestream <id>', summary: 'events of this livestream: its id, external id or title' },
  {
    flags: '--institution <urn>',
    summary: 'all events of this institution; hubctl feed lookup finds it by its name',
  },
]
const outcome = {
  flags: '--outcome <outcome>',
  summary: `${outcomes.slice(0, -1).join(', ')} (all that was not published as meant) or dry-run`,
}
const item = { flags: '--item <playlist-item-id>', summary: 'events with this playlistItemId' }

/** Commands about what became of events. */
export const eventCommands: readonly Command[] = [
  {
    words: 'events list',
    options: [
      ...whose,
      { flags: '--since <time>', summary: `decided since then: ${instantForms}` },
      outcome,
      item,
      { flags: '--limit <n>', summary: `at most so many (50), up to ${maxLimit}` },
      {
        flags: '--before <place>',
        summary: 'only events before a position, or before a time as for --since',
      },
    ],
    operation: 'events.list',
    args(input) {
      const asked = whoseOf(input)
      const since = input.optional('since')
      const before = input.optional('before')
      const limit = input.optional('limit')
      return {
        ...{ ...asked, ...filterOf(input) },
        ...(since !== undefined && { since: passedInstantOf('--since', since) }),
        ...(before !== undefined && {
          before: /^[0-9]{1,16}$/.test(before) ? Number(before) : instantOf('--before', before),
        }),
        ...(limit !== undefined && { limit: limitOf(limit) }),
      }
    },
    print: (result, printer) => printer.list(result.events.map(withResult), eventColumns, 'No events.'),
    json: (result) => result.events,
    warning(result) {
      const next = result.next
      return typeof next === 'number' ? `there may be more: --before ${next} goes on` : undefined
    },
  },
  {
    words: 'events show',
    parameters: ['<id>'],
    operation: 'events.show',
    args: (input) => ({ id: input.text('id') }),
    print: printEvent,
  },
  {
    words: 'events tail',
    summary: 'events as they are decided, on whichever node; --json prints one value per line',
    options: [...whose, outcome, item],
    operation: 'events.tail',
    args: (input) => ({ ...whoseOf(input), ...filterOf(input) }),
    print: (result) => String(result),
    line: (value, printer) => {
      if (fits(listedEvent, value)) return printer.line(tailOf(value))
      const leftOut = valueAt(value, 'leftOut')
      if (typeof leftOut === 'number') return printer.warning(`${leftOut} events left out: too many at once`)
      return printer.properties(value)
    },
  },
  {
    words: 'events newest',
    operation: 'events.newest',
    ...filtersOf('events.newest'),
    print: (result, printer) => printer.list(result, newestColumns, 'No livestreams.'),
  },
  {
    words: 'events slow',
    operation: 'events.slow',
    print: (result, printer) =>
      printer.list(
        result.map((event) => ({ ...rounded(event), kind: kindOf(event.event) })),
        slowColumns,
        'No event was published in the last hour, or since this node was started.',
      ),
  },
]

const eventColumns = [
  ['POSITION', 'position'],
  ['AT', 'at'],
  ['OUTCOME', 'result'],
  ['EVENT', 'kind'],
  ['LIVESTREAM', 'where'],
  ['ITEM', 'playlistItemId'],
  ['TITLE', 'called'],
  ['ARTIST', 'artist'],
  ['EVENT TIME', 'eventTime'],
  ['ID', 'id'],
  ['WHY', 'why'],
] as const

const newestColumns = [
  ['ACCEPTED', 'at'],
  ['EVENT TIME', 'eventTime'],
  ['LIVESTREAM', 'livestream.title'],
  ['EXTERNAL ID', 'livestream.externalId'],
  ['INSTITUTION', 'institution.title'],
  ['ID', 'livestream.id'],
] as const

const tailColumns = [
  ['at', 29],
  ['result', 18],
  ['kind', Math.max(14, ...eventKinds.map(({ name }) => shortName(name).length))],
  ['playlistItemId', 12],
  ['what', 40],
  ['why', 0],
] as const

const slowColumns = [
  ['WRITTEN', 'written'],
  ['STORED', 'stored'],
  ['DECIDED', 'decided'],
  ['AT', 'at'],
  ['EVENT', 'kind'],
  ['NODE', 'node'],
  ['ID', 'id'],
] as const

const topicColumns = [
  ['POSITION', 'position'],
  ['TOPIC', 'topic'],
  ['RETAINED', 'retained'],
] as const

const nodeColumns = [
  ['NODE', 'node'],
  ['RECIPIENTS', 'recipients'],
] as const

const stageColumns = [
  ['ACCEPTED BY', 'node'],
  ['MS UNTIL DECIDED', 'decided'],
  ['STORED', 'stored'],
  ['WRITTEN', 'written'],
] as const

const deliveryColumns = [
  ['WEBHOOK OR TARGET', 'queue'],
  ['STATE', 'state'],
  ['TRIES', 'tries'],
  ['LAST', 'last'],
  ['CONTACT', 'contact'],
  ['URL', 'target'],
] as const

const errorColumns = [
  ['PATH', 'path'],
  ['CODE', 'errorCode'],
  ['MESSAGE', 'message'],
] as const

/** What is probably wrong with a published event. */
export const warningColumns = [
  ['PATH', 'path'],
  ['WARNING', 'errorCode'],
  ['MESSAGE', 'message'],
] as const

function printEvent(result: ShownEvent, printer: Printer): string {
  const { refusedServices, creator, report, errors, refused, topics, published, nodes, stages } = result
  const known = withResult(result)
  const fields = [
    ...(['at', 'result', 'id', 'position', 'event', 'institutionId', 'services'] as const),
    ...(refusedServices?.length ? (['refusedServices'] as const) : []),
    ...(['playlistItemId', 'name', 'title', 'artist', 'eventTime'] as const),
  ]
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
  if (isOver) return printer.sentence(`Not shown on ${topic} any more: valid until`, localTime(validUntil))
  if (newer === null) return false
  const { id, title, eventTime } = newer
  const which = [id, ...(title === null ? [] : [`"${title}"`]), `of ${localTime(eventTime)}`].join(' ')
  return printer.sentence(`Not shown on ${topic}: a newer event came before it,`, which)
}

/** An event with the further fields that tables show. */
function withResult<Row extends ListedEvent>(row: Row) {
  const { outcome, dryRun, isRepetition, event, title, artist, name, services, errors } = row
  const refusedFor = row.refusedServices ?? []
  const isPartly = outcome === 'published' && errors.length > 0
  return {
    ...row,
    result: `${outcome}${dryRun ? ', dry run' : ''}${isPartly ? ' in part' : ''}${isRepetition ? ', again' : ''}`,
    kind: kindOf(event),
    called: title ?? name,
    what: [title ?? name, artist].filter((part) => part !== null).join(' – '),
    where: `${firstOf(services)}${refusedFor.length > 0 ? `, not ${firstOf(refusedFor)}` : ''}`,
    why: [...new Set(errors.map(({ errorCode, path }) => `${errorCode} ${path}`))],
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

function kindOf(event: string | null): string | null {
  return event === null ? null : shortName(event)
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

function whoseOf(input: Input): Record<string, string> {
  const livestream = input.optional('livestream')
  const institution = input.optional('institution')
  if (livestream !== undefined && institution !== undefined)
    throw usage('--livestream and --institution cannot be given together')
  if (livestream === '') throw usage('--livestream must be the id or external id of a livestream')
  const wrong = institution === undefined ? undefined : checkInstitution(institution)
  if (wrong !== undefined) throw usage(wrong)
  return {
    ...(livestream !== undefined && { livestream }),
    ...(institution !== undefined && { institution }),
  }
}

function filterOf(input: Input): Record<string, string> {
  const outcome = input.optional('outcome')
  const item = input.optional('item')
  if (outcome !== undefined && !outcomes.includes(outcome))
    throw usage(`"${outcome}" is not an outcome: expected one of ${outcomes.join(', ')}`)
  if (item === '') throw usage('--item must be a playlistItemId')
  return { ...(outcome !== undefined && { outcome }), ...(item !== undefined && { item }) }
}

function limitOf(value: string): number {
  const limit = /^[0-9]{1,4}$/.test(value) ? Number(value) : 0
  if (limit < 1 || limit > maxLimit)
    throw usage(`--limit "${value}" is not a whole number from 1 to ${maxLimit}`)
  return limit
}
