import type { Static } from 'typebox'
import { Type } from '../../event/type.ts'
import { history, keptEvent, report } from './examples.ts'

/*
 * Schemas of the event history, and of feedback: the reports that publishers get (design.md §7, §9).
 */

const problem = Type.Object({ path: Type.String(), message: Type.String(), errorCode: Type.String() })

/** A warning about an event, in feedback and over HTTPS (open.md §3). */
export const warning = Type.Object({
  ...problem.properties,
  startBehindMs: Type.Optional(
    Type.Integer({
      description:
        'Only of `start.clock`: milliseconds from `start` to the arrival of the event; negative if it lies ahead',
    }),
  ),
})

/** The payload of feedback (design.md §7). */
export const Feedback = Type.Object(
  {
    outcome: Type.Unsafe<string>({ type: 'string', enum: ['published', 'blocked', 'invalid', 'failed'] }),
    statuses: Type.Object({ published: Type.Integer(), blocked: Type.Integer(), failed: Type.Integer() }),
    event: textOrNull('Name of the event'),
    id: textOrNull('Given by the hub when published'),
    playlistItemId: textOrNull(''),
    name: textOrNull('Name of a control state'),
    eventTime: textOrNull('`start` or `time` of the event'),
    services: Type.Array(Type.String()),
    errors: Type.Array(problem),
    warnings: Type.Optional(
      Type.Array(warning, {
        minItems: 1,
        description:
          'What is probably wrong with a published event, or was completed, replaced or dropped; absent when there is nothing to say',
      }),
    ),
    receivedAt: Type.String({ format: 'date-time' }),
    clientId: textOrNull('MQTT client id of the publisher; null over HTTPS'),
    payloadHash: Type.String({
      pattern: '^[0-9a-f]{16}$',
      description: 'Beginning of the SHA-256 of what was sent, byte for byte',
    }),
    dryRun: Type.Optional(
      Type.Literal(true, { description: 'The event was tried out only; absent otherwise' }),
    ),
    trace: Type.Null(),
  },
  { $id: 'Feedback', title: 'Feedback', examples: [report] },
)

const trace = Type.Null({ description: 'Deprecated, always null' })
const position = Type.Integer({
  description: 'Rises with each event that the hub decides; `before` takes it',
})
const livestreamEvent = {
  type: 'object',
  description: 'The event as subscribers got it, with its id. Each kind is described in /asyncapi.json.',
} as const

export const LivestreamEvents = Type.Object(
  {
    events: Type.Array(
      Type.Object({
        position,
        acceptedAt: Type.String({ format: 'date-time' }),
        event: Type.Unsafe<Record<string, unknown>>(livestreamEvent),
      }),
      { description: 'The newest first' },
    ),
    next: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      description: 'Go on with this as `before`; null where there is nothing more',
    }),
    trace,
  },
  { $id: 'LivestreamEvents', title: 'LivestreamEvents', examples: [history] },
)

/** Who got an event (open.md §7). */
const Receivers = Type.Object({
  clients: Type.Unsafe<number | null>({
    type: ['integer', 'null'],
    description: 'Connected MQTT clients that got it; null where nodes do not remember',
  }),
  webhooks: Type.Unsafe<readonly object[] | null>({
    type: ['array', 'null'],
    items: {
      type: 'object',
      required: ['queue', 'target', 'state', 'held', 'behind', 'attempts'],
      properties: {
        queue: { type: 'string', description: 'Name of the subscription' },
        target: { type: ['string', 'null'] },
        contact: { type: ['string', 'null'] },
        state: {
          type: 'string',
          enum: ['delivered', 'waiting', 'retrying', 'dead letter', 'stale', 'settled'],
        },
        held: {
          type: ['string', 'null'],
          enum: ['paused', 'disabled', null],
          description: 'What holds it back',
        },
        behind: { type: ['string', 'null'], description: 'Id of the event that it waits behind' },
        attempts: { type: 'array', items: { $ref: 'Delivery' } },
      },
    },
    description: 'Webhooks of the institution; null without the permission `subscribe`',
  }),
  others: Type.Integer({ description: 'Number of webhooks of other institutions, and of plugin targets' }),
})
export type Receivers = Static<typeof Receivers>

export const KeptEvent = Type.Object(
  {
    position,
    decidedAt: Type.String({ format: 'date-time' }),
    report: Type.Unsafe<Record<string, unknown> | null>({
      anyOf: [{ $ref: 'Feedback' }, { type: 'null' }],
      description: 'Null where it is not kept any more, and the event is',
    }),
    event: Type.Unsafe<Record<string, unknown> | null>({
      ...livestreamEvent,
      type: ['object', 'null'],
      description: `${livestreamEvent.description} Null where it was refused, or is not kept any more.`,
    }),
    creator: textOrNull('Who made the event, as its publisher said; it is not in the event'),
    receivers: Receivers,
    trace,
  },
  { $id: 'KeptEvent', title: 'KeptEvent', examples: [keptEvent] },
)

function textOrNull(description: string) {
  return Type.Unsafe<string | null>({ type: ['string', 'null'], ...(description !== '' && { description }) })
}
