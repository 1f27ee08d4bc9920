import { isUtf8 } from 'node:buffer'
import type { Static, TObject } from 'typebox'
import {
  boolean,
  instant,
  instantOrNull,
  integer,
  number,
  orNull,
  recordOf,
  string,
  stringOrNull,
  texts,
} from '../event/answer-fields.ts'
import { parseInstant } from '../event/format.ts'
import { eventClasses } from '../event/kind.ts'
import type { Excerpt } from '../event/message.ts'
import { feedback, problem, receiver, warning } from '../event/outcome-schemas.ts'
import { Type } from '../event/type.ts'
import type { Entry } from '../journal/entry.ts'
import {
  type EventRow,
  isAsked,
  isOf,
  outcomes,
  type RowFilter,
  readObject,
  rowOfMessage,
  rowOfReport,
} from '../journal/history/event-row.ts'
import type { Found } from '../journal/history/find.ts'
import type { History } from '../journal/history/history.ts'
import {
  institution,
  limit,
  ofEvents,
  oneOf,
  pageLimit,
  position,
  positionOrInstant,
  text,
} from './arguments.ts'
import { refusal, unknownName } from './errors.ts'
import { anId, anInstitution } from './examples.ts'
import { livestreamsNamed, newestEvents } from './lookups/livestreams.ts'
import type { NodeParts } from './node-parts.ts'
import { type Of, reads } from './operation.ts'

const warnings = Type.Optional(Type.Array(warning))

const row = {
  position: integer,
  at: instant,
  outcome: stringOrNull,
  dryRun: Type.Optional(Type.Literal(true)),
  isRepetition: Type.Optional(Type.Literal(true)),
  id: stringOrNull,
  event: stringOrNull,
  institutionId: stringOrNull,
  services: texts,
  refusedServices: Type.Optional(texts),
  playlistItemId: stringOrNull,
  name: stringOrNull,
  eventTime: stringOrNull,
  title: stringOrNull,
  artist: stringOrNull,
  errors: Type.Array(problem),
  warnings,
}
export const listedEvent = Type.Object(row)

const page = Type.Object({
  events: Type.Array(listedEvent),
  next: orNull(integer, 'the `before` of the next page'),
})

export const stages = { decided: number, stored: number, written: number }

const slowEvent = Type.Object({
  ...stages,
  id: string,
  event: string,
  position: integer,
  at: instant,
  node: string,
})

export const shownEvent = Type.Object({
  ...row,
  published: orNull(recordOf(Type.Unknown())),
  report: orNull(
    Type.Object({ warnings, clientId: Type.Optional(stringOrNull) }, { additionalProperties: true }),
  ),
  refused: orNull(
    Type.Object({
      bytes: integer,
      isWhole: boolean,
      text: Type.Optional(string),
      base64: Type.Optional(string),
    }),
  ),
  creator: orNull(Type.String({ description: 'who made the event, as its publisher said' })),
  topics: Type.Array(
    Type.Object({
      topic: string,
      position: integer,
      retained: boolean,
      validUntil: instantOrNull,
      newer: orNull(
        Type.Object({ position: integer, id: stringOrNull, title: stringOrNull, eventTime: stringOrNull }),
      ),
    }),
  ),
  nodes: Type.Array(Type.Object({ node: string, recipients: orNull(integer) })),
  stages: orNull(Type.Object({ ...stages, node: string })),
  deliveries: Type.Array(receiver),
})

const newest = Type.Object({
  at: instantOrNull,
  eventTime: stringOrNull,
  livestream: Type.Object({ id: string, externalId: stringOrNull, title: stringOrNull, isListed: boolean }),
  institution: Type.Object({ id: stringOrNull, title: stringOrNull }),
  silentSince: orNull(instant, 'without an event for longer than usual at this hour; null: it is not'),
  loop: orNull(
    Type.Object(
      { since: instant, lastAt: instant, with: string },
      {
        description:
          'within the last hour the livestream was in a loop with another: the id of the one that it published after last',
      },
    ),
  ),
})

const recent = Type.Object({
  events: Type.Array(listedEvent),
  next: integer,
  leftOut: orNull(integer),
})

/** A report (docs/publishers.md, "Feedback") with the topics of the messages. */
export const checked = Type.Object({ ...feedback.properties, payloadHash: string, warnings, topics: texts })

export type ListedEvent = Of<typeof listedEvent>
export type EventError = Of<typeof problem>
type SlowEvent = Of<typeof slowEvent>
/** When an event reached each stage, milliseconds after its arrival. */
export type Stages = Pick<SlowEvent, 'decided' | 'stored' | 'written'>
export type ShownEvent = Of<typeof shownEvent>
export type NewestEvent = Of<typeof newest>
export type Checked = Of<typeof checked>

const defaultLimit = 50
/** A number with more digits is the id of an event. */
const maxPositionDigits = 16

/** How the arguments that select events are typed. */
const whose = {
  livestream: ['--livestream <id>', 'events of this livestream: its id, external id or title'],
  institution: [
    '--institution <urn>',
    'all events of this institution; hubctl feed lookup finds it by its name',
  ],
} as const
const which = {
  outcome: [
    '--outcome <outcome>',
    `${outcomes.slice(0, -1).join(', ')} (all that was not published as meant) or dry-run`,
  ],
  item: ['--item <playlist-item-id>', 'events with this playlistItemId'],
} as const

function notBoth({ livestream, institution }: { livestream?: string; institution?: string }) {
  const areBoth = livestream !== undefined && institution !== undefined
  return areBoth ? 'livestream and institution cannot be given together' : undefined
}

/** The commands about events: what became of them, and what would. */
export const eventOperations = {
  'events.list': reads('what became of events, newest first: of a livestream, an institution or all', {
    args: {
      ...ofEvents,
      since: Type.Optional(positionOrInstant),
      before: Type.Optional(positionOrInstant),
      limit: pageLimit,
    },
    example: { livestream: anId, limit: 20 },
    hubctl: {
      about: '[Questions that it answers](operators.md#questions-about-events).',
      typed: {
        ...whose,
        since: ['--since <time>', 'decided since then'],
        ...which,
        limit: ['--limit <n>', 'at most so many (50), up to 1000'],
        before: ['--before <place>', 'only events before a position, or before a time as for --since'],
      },
    },
    check: notBoth,
    result: page,
    async run(node, { since, before, limit = defaultLimit, ...asked }) {
      const { history } = node.broker
      const { institutionId, livestream } = await scopeOf(node, asked)
      const everybody = livestream ? [] : (node.feed.current()?.institutions() ?? [])
      return history.list({
        ...(livestream && { livestream }),
        institutionIds: institutionId === undefined ? everybody : [institutionId],
        limit,
        ...filterOf(asked),
        ...(typeof since === 'number' ? { from: since } : { since: instantOf('since', since) }),
        before: await positionOf(history, before),
      })
    },
  }),
  'events.show': reads(
    'one event: by its id, or, where it was refused, by the position that the list shows',
    {
      args: { id: text('the id or the position of an event') },
      example: { id: '505315548641748030472978432' },
      hubctl: { about: 'Its report, where it went, how long each stage took.' },
      result: shownEvent,
      run: async (node, { id }) => toShown(node, await eventNamed(node, id)),
    },
  ),
  'events.tail': reads('events as they are decided, on whichever node', {
    args: {
      ...ofEvents,
      after: Type.Optional(
        Type.Union([position, Type.Literal('now')], {
          description: 'a position (`next` of the answer before), or `now`',
        }),
      ),
    },
    example: { after: 48_211 },
    singleAnswerArgs: { after: 'now' },
    hubctl: { typed: { ...whose, ...which } },
    check: notBoth,
    result: recent,
    async run(node, { after, ...asked }) {
      const { institutionId, livestream } = await scopeOf(node, asked)
      const filter = filterOf(asked)
      const isMeant = (row: EventRow) =>
        isAsked(row, filter) &&
        (institutionId === undefined || row.institutionId === institutionId) &&
        (livestream === undefined || isOf(row, livestream, filter.outcome))
      if (after === undefined) return node.tail(isMeant)
      const { events, ...rest } = await node.broker.history.since(after === 'now' ? undefined : after)
      return { events: events.filter(isMeant), ...rest }
    },
  }),
  'events.newest': reads(
    'the last accepted event that each livestream still shows; livestreams without one first, then the longest silent',
    {
      args: { institution: Type.Optional(institution), limit },
      hubctl: {
        columns: [
          ['ACCEPTED', 'at'],
          'eventTime',
          ['LIVESTREAM', 'livestream.title'],
          ['EXTERNAL ID', 'livestream.externalId'],
          ['INSTITUTION', 'institution.title'],
          ['SILENT SINCE', 'silentSince'],
          ['LOOP SINCE', 'loop.since'],
          ['ID', 'livestream.id'],
        ],
        nothing: 'No livestreams.',
      },
      result: Type.Array(newest),
      async run(node, { institution, limit }) {
        const isAsked = ({ id }: { id: string | null }) => institution === undefined || id === institution
        const asked = (await newestEvents(node)).filter((row) => isAsked(row.institution))
        return asked.sort((a, b) => order(a.at) - order(b.at)).slice(0, limit)
      },
    },
  ),
  'events.slow': reads(
    'the 20 slowest events of the last hour, with the milliseconds from their arrival to each stage',
    {
      result: Type.Array(slowEvent),
      run: async ({ eventTrace }) =>
        (await eventTrace.slowest()).map(({ at, ...event }) => ({
          ...event,
          at: new Date(at).toISOString(),
        })),
    },
  ),
}

export const checkOperation = {
  check: reads('dry run: what would become of an event, and why', {
    args: {
      institution,
      class: Type.Optional(oneOf(...eventClasses)),
      payload: Type.String({ description: 'the bytes of an event in base64' }),
    },
    example: { institution: anInstitution, payload: 'e30=' },
    hubctl: {
      about: 'With [warnings](publishers.md#warnings). Exit code 1 if the hub would refuse the event.',
      typed: {
        payload: '<file>',
        institution: ['--institution <urn>', 'institution the event is published for'],
        class: ['--class <class>', 'as if published to inbox/…/<class>'],
      },
    },
    result: checked,
    run: ({ pipeline }, { institution, class: topicClass, payload }) =>
      pipeline.check({
        payload: Buffer.from(payload, 'base64'),
        institutionId: institution,
        topicClass,
        allowedClasses: [],
      }),
  }),
}

/** The arguments that select events. */
type Selection = Static<TObject<typeof ofEvents>>

/** The livestream or institution whose events are asked for. Empty: all institutions. */
async function scopeOf(node: NodeParts, { livestream: name, institution: institutionId }: Selection) {
  if (name !== undefined) {
    const [found, ...others] = await livestreamsNamed(node, name)
    if (!found) throw unknownName('livestream', name)
    const isTitle = found.id !== name && found.externalId !== name
    if (isTitle && others.length > 0)
      throw refusal(`${others.length + 1} livestreams are called ${JSON.stringify(name)}: give the id of one`)
    return { livestream: found }
  }
  return institutionId === undefined ? {} : { institutionId }
}

async function positionOf(history: History, before: number | string | undefined) {
  if (typeof before === 'number') return before
  const at = instantOf('before', before)
  return at === undefined ? undefined : history.positionAt(at)
}

/** The event with this id, or at this position. Throws a refusal if the history has none. */
export async function eventNamed({ broker }: NodeParts, id: string): Promise<Found> {
  const { find } = broker.history
  const isPosition = /^[0-9]+$/.test(id) && id.length <= maxPositionDigits
  const { found, isWhole } = isPosition
    ? { found: await find.at(Number(id)), isWhole: true }
    : await find.byId(id)
  if (found) return found
  if (isWhole) throw unknownName('event that is still kept with', id)
  throw refusal(`there were too many events around the time of ${id}: show it by its position in a list`)
}

/** Everything that is known of an event, to operators. */
export async function toShown({ broker, deliveries, eventTrace }: NodeParts, { report, messages }: Found) {
  const { history, retained } = broker
  const [message] = messages
  const event = message ? readObject(message.payload) : undefined
  const said = report ? readObject(report.payload) : null
  const row = report && said ? rowOfReport(report, said, event) : message && rowOfMessage(message)
  if (!row) throw new Error('an event was found without a report and without a message')
  const newer = await history.newerThan(messages)
  const traces = await eventTrace.of(messages.map(({ position }) => position))
  const accepted = traces.find(({ stages }) => stages !== null)
  const id = row.outcome === 'published' && !row.dryRun ? row.id : null
  return {
    ...row,
    published: event ?? null,
    report: said,
    refused: report?.refused ? excerpt(report.refused) : null,
    creator: report?.creator ?? null,
    topics: messages.map(({ topic, position, retained: kept }, nth) => ({
      topic,
      position,
      validUntil: kept?.expires === undefined ? null : new Date(kept.expires).toISOString(),
      ...shownOrNewer(retained.current(topic)?.position === position, newer[nth]),
    })),
    nodes: traces.map(({ node, recipients }) => ({ node, recipients })),
    stages: accepted?.stages ? { node: accepted.node, ...stagesOf(accepted.stages) } : null,
    deliveries:
      id === null
        ? []
        : // Uses the row of the event, because its messages may be removed already.
          await deliveries.ofEvent({
            id,
            event: row.event ?? '',
            at: Date.parse(row.at),
            livestreamIds: row.services,
          }),
  }
}

/**
 * `retained`: whether the message is the retained value of its topic. `newer`: the message that kept this message from
 * ever being retained. Null: this message is or was retained, or the other message is not known.
 */
function shownOrNewer(retained: boolean, newer: Entry | undefined) {
  return { retained, newer: retained ? null : summaryOf(newer) }
}

/** A few fields of the event of a message. */
function summaryOf(message: Entry | undefined) {
  if (!message) return null
  const { position, id, title, eventTime } = rowOfMessage(message)
  return { position, id, title, eventTime }
}

/** Returns only the times of the three stages, without the other fields of `EventStages`. */
function stagesOf({ decided, stored, written }: { decided: number; stored: number; written: number }) {
  return { decided, stored, written }
}

function filterOf({ outcome, item }: Selection): RowFilter {
  return { outcome, playlistItemId: item }
}

function instantOf(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  const at = parseInstant(value)
  if (at === undefined) throw refusal(`${name} must be an instant such as 2026-03-01T18:02:00+01:00`)
  return at
}

/** The beginning of a refused payload, as text or else in base64. */
function excerpt({ head, bytes }: Excerpt) {
  // If the payload is cut within a character, the one to three bytes of that character are left out.
  const ends = head.length < bytes ? [0, 1, 2, 3] : [0]
  const end = ends.map((cut) => head.length - cut).find((length) => isUtf8(head.subarray(0, length)))
  const content =
    end === undefined ? { base64: head.toString('base64') } : { text: head.toString('utf8', 0, end) }
  return { bytes, isWhole: head.length === bytes, ...content }
}

/** Those without an event come first. */
function order(at: string | null): number {
  return at === null ? 0 : Date.parse(at)
}
