import { integer, orNull, stringOrNull } from '../../event/answer-fields.ts'
import { eventKinds } from '../../event/kind.ts'
import { Type } from '../../event/type.ts'
import { fieldOf } from '../../on-air/now.ts'
import * as examples from './examples.ts'

/* Schemas of what is on air, now and at a time (open.md §4). */

const event = { type: 'object', description: 'As subscribers got it; see /asyncapi.json' } as const
const eventOrNull = Type.Unsafe<object | null>({ ...event, type: ['object', 'null'] })

/** One for each kind of event. */
const shown = Object.fromEntries(
  eventKinds.map((kind) => [
    fieldOf(kind),
    Type.Optional(
      kind.slotField === undefined
        ? Type.Unsafe<object | null>({ ...eventOrNull, description: `Newest event: ${kind.about}` })
        : Type.Array(Type.Unsafe<object>(event), {
            description: `Of each \`${kind.slotField}\` the newest event, if it is on: ${kind.about}`,
          }),
    ),
  ]),
)

export const LivestreamNow = Type.Object(
  {
    id: Type.String(),
    title: stringOrNull,
    institution: Type.Object({ id: stringOrNull, title: stringOrNull }),
    ...shown,
    at: orNull(
      Type.String({ format: 'date-time', description: 'When the newest of these events was accepted' }),
    ),
    position: orNull(integer, 'Position of the newest of these events; a stream goes on behind it'),
    stale: Type.Boolean({ description: 'What plays should have ended more than 10 minutes ago' }),
  },
  {
    $id: 'LivestreamNow',
    title: 'LivestreamNow',
    description: 'What a livestream shows. Kinds that the credential of a reader does not cover are absent.',
    examples: [examples.livestreamNow],
  },
)

export const LivestreamsNow = Type.Array(Type.Unsafe<object>({ $ref: 'LivestreamNow' }), {
  $id: 'LivestreamsNow',
  title: 'LivestreamsNow',
  examples: [[examples.livestreamNow]],
})

export const PlayedAt = Type.Object(
  {
    at: Type.String({ format: 'date-time', description: 'The time that was asked for' }),
    before: eventOrNull,
    playing: Type.Unsafe<object>(event),
    after: eventOrNull,
  },
  {
    $id: 'PlayedAt',
    title: 'PlayedAt',
    description:
      'What played at a time, by event time. It ended when `after` began. Null: nothing that is kept.',
    examples: [examples.playedAt],
  },
)
