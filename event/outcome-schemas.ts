import type { Static } from 'typebox'
import { instant, integer, one, orNull, string, stringOrNull, texts } from './answer-fields.ts'
import { Type } from './type.ts'

/*
 * Schemas of what became of an event: feedback, which publishers get, and deliveries (design.md §7, §9).
 */

/** A mistake in an event, in feedback. */
export const problem = Type.Object({ path: string, message: string, errorCode: string })

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
export const feedback = Type.Object({
  outcome: one('published', 'blocked', 'invalid', 'failed'),
  statuses: Type.Object({ published: integer, blocked: integer, failed: integer }),
  event: orNull(string, 'Name of the event'),
  id: orNull(string, 'Given by the hub when published'),
  playlistItemId: stringOrNull,
  name: orNull(string, 'Name of a control state'),
  eventTime: orNull(string, '`start` or `time` of the event'),
  services: texts,
  errors: Type.Array(problem),
  warnings: Type.Optional(
    Type.Array(warning, {
      minItems: 1,
      description:
        'What is probably wrong with a published event, or was completed, replaced or dropped; absent when there is nothing to say',
    }),
  ),
  receivedAt: instant,
  clientId: orNull(string, 'MQTT client id of the publisher; null over HTTPS'),
  payloadHash: Type.String({
    pattern: '^[0-9a-f]{16}$',
    description: 'Beginning of the SHA-256 of what was sent, byte for byte',
  }),
  dryRun: Type.Optional(
    Type.Literal(true, { description: 'The event was tried out only; absent otherwise' }),
  ),
  trace: Type.Null(),
})

/** A try to deliver something to a webhook or a plugin target. */
export const attempt = Type.Object({
  messageId: Type.String({ description: 'Id of the event, or of a test message' }),
  /** When it began. */
  time: instant,
  status: orNull(integer, 'Status of the answer; null: none came'),
  duration: Type.Integer({ description: 'milliseconds' }),
  reason: orNull(string, 'Why it was not acknowledged; null: it was'),
  stale: Type.Optional(
    Type.Object(
      {
        livestreamId: stringOrNull,
        count: integer,
        /** When the hub accepted the first and the last of them. No acknowledged delivery lies in between. */
        first: instant,
        last: instant,
      },
      {
        description:
          'No try: these events of a livestream were passed over, because they were not worth it any more (`maxAge`)',
      },
    ),
  ),
})
export type Attempt = Static<typeof attempt>

/** A webhook or plugin target that an event is for. */
export const receiver = Type.Object({
  queue: Type.String({ description: 'Name of the subscription' }),
  /** The URL of the webhook; the URL or the driver of the plugin target. */
  target: stringOrNull,
  /** Null for a plugin target. */
  contact: stringOrNull,
  /**
   * `stale`: the event was passed over, because it was not worth delivering any more. `settled`: the hub delivered,
   * dropped or passed it over, but no longer knows which.
   */
  state: one('delivered', 'waiting', 'retrying', 'dead letter', 'stale', 'settled'),
  held: orNull(one('paused', 'disabled'), 'What holds it back'),
  behind: orNull(string, 'Id of the event that it waits behind'),
  attempts: Type.Array(attempt),
})

/** Who got an event (open.md §7). */
export const receivers = Type.Object({
  clients: orNull(integer, 'Connected MQTT clients that got it; null where nodes do not remember'),
  webhooks: orNull(
    Type.Array(receiver),
    'Webhooks of the institution; null without the permission `subscribe`',
  ),
  others: Type.Integer({ description: 'Number of webhooks of other institutions, and of plugin targets' }),
})
export type Receivers = Static<typeof receivers>
