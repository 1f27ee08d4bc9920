import { eventClasses } from '../event/kind.ts'
import { Type } from '../event/type.ts'
import { institution, limit, ofEvents, oneOf, pageLimit, positionOrInstant, text } from './arguments.ts'
import { anId, anInstitution } from './examples.ts'
import { type Of, reads } from './operation.ts'
import { attempt } from './queues.ts'
import {
  boolean,
  instant,
  instantOrNull,
  integer,
  number,
  one,
  orNull,
  recordOf,
  string,
  stringOrNull,
  texts,
} from './results.ts'

const errorItem = Type.Object({ path: string, message: string, errorCode: string })
const warning = Type.Object({ ...errorItem.properties, startBehindMs: Type.Optional(integer) })
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
  errors: Type.Array(errorItem),
}
export const listedEvent = Type.Object(row)

const page = Type.Object({
  events: Type.Array(listedEvent),
  next: Type.Union([integer, Type.Null()], { description: 'the `before` of the next page' }),
})

const stages = { decided: number, stored: number, written: number }

const slowEvent = Type.Object({
  ...stages,
  id: string,
  event: string,
  position: integer,
  at: instant,
  node: string,
})

const delivery = Type.Object({
  queue: string,
  target: stringOrNull,
  contact: stringOrNull,
  state: one('delivered', 'waiting', 'retrying', 'dead letter', 'settled'),
  held: orNull(one('paused', 'disabled')),
  behind: stringOrNull,
  attempts: Type.Array(attempt),
})

const shown = Type.Object({
  ...row,
  published: orNull(recordOf(Type.Unknown())),
  report: orNull(Type.Object({ warnings }, { additionalProperties: true })),
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
  deliveries: Type.Array(delivery),
})

const newest = Type.Object({
  at: instantOrNull,
  eventTime: stringOrNull,
  livestream: Type.Object({ id: string, externalId: stringOrNull, title: stringOrNull, isListed: boolean }),
  institution: Type.Object({ id: stringOrNull, title: stringOrNull }),
})

const recent = Type.Object({
  events: Type.Array(listedEvent),
  next: integer,
  leftOut: orNull(integer),
})

/** A report (docs/publishers.md, "Feedback") with the topics of the messages. */
const checked = Type.Object({
  outcome: one('published', 'blocked', 'invalid', 'failed'),
  statuses: Type.Object({ published: integer, blocked: integer, failed: integer }),
  event: stringOrNull,
  id: stringOrNull,
  playlistItemId: stringOrNull,
  name: stringOrNull,
  eventTime: stringOrNull,
  services: texts,
  errors: Type.Array(errorItem),
  warnings,
  receivedAt: instant,
  clientId: stringOrNull,
  payloadHash: string,
  dryRun: Type.Optional(Type.Literal(true)),
  trace: Type.Null(),
  topics: texts,
})

export type ListedEvent = Of<typeof listedEvent>
export type EventError = Of<typeof errorItem>
export type SlowEvent = Of<typeof slowEvent>
/** When an event reached each stage, milliseconds after its arrival. */
export type Stages = Pick<SlowEvent, 'decided' | 'stored' | 'written'>
export type ShownEvent = Of<typeof shown>
export type NewestEvent = Of<typeof newest>
export type Checked = Of<typeof checked>

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
    result: page,
  }),
  'events.show': reads(
    'one event: by its id, or, where it was refused, by the position that the list shows',
    {
      args: { id: text('the id or the position of an event') },
      example: { id: '505315548641748030472978432' },
      result: shown,
    },
  ),
  'events.tail': {
    ...reads('events as they are decided, on whichever node', {
      args: {
        ...ofEvents,
        after: Type.Optional(
          Type.Union([Type.Integer({ minimum: 0 }), Type.Literal('now')], {
            description: 'a position (`next` of the answer before), or `now`',
          }),
        ),
      },
      example: { after: 48_211 },
      result: recent,
    }),
    singleAnswerArgs: { after: 'now' },
  },
  'events.newest': reads(
    'the last accepted event that each livestream still shows; livestreams without one first, then the longest silent',
    { args: { institution: Type.Optional(institution), limit }, result: Type.Array(newest) },
  ),
  'events.slow': reads(
    'the 20 slowest events of the last hour, with the milliseconds from their arrival to each stage',
    { result: Type.Array(slowEvent) },
  ),
  check: reads('dry run: what would become of an event, and why', {
    args: {
      institution,
      class: Type.Optional(oneOf(...eventClasses)),
      payload: Type.String({ description: 'the bytes of an event in base64' }),
    },
    example: { institution: anInstitution, payload: 'e30=' },
    result: checked,
  }),
}
