import { instant, integer, orNull, string } from '../../event/answer-fields.ts'
import { attempt, feedback, receivers } from '../../event/outcome-schemas.ts'
import { Type } from '../../event/type.ts'
import * as examples from './examples.ts'

/*
 * Schemas of the event history, of deliveries, and of feedback: the reports that publishers get (design.md §7, §9).
 */

export const Feedback = Type.Object(feedback.properties, {
  $id: 'Feedback',
  title: 'Feedback',
  examples: [examples.report],
})

export const Delivery = Type.Object(attempt.properties, {
  $id: 'Delivery',
  title: 'Delivery',
  examples: [examples.delivery],
})

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
        acceptedAt: instant,
        event: Type.Unsafe<Record<string, unknown>>(livestreamEvent),
      }),
      { description: 'The newest first' },
    ),
    next: orNull(integer, 'Go on with this as `before`; null where there is nothing more'),
    trace,
  },
  { $id: 'LivestreamEvents', title: 'LivestreamEvents', examples: [examples.history] },
)

export const KeptEvent = Type.Object(
  {
    position,
    decidedAt: instant,
    report: orNull(
      Type.Unsafe<Record<string, unknown>>({ $ref: 'Feedback' }),
      'Null where it is not kept any more, and the event is',
    ),
    event: Type.Unsafe<Record<string, unknown> | null>({
      ...livestreamEvent,
      type: ['object', 'null'],
      description: `${livestreamEvent.description} Null where it was refused, or is not kept any more.`,
    }),
    creator: orNull(string, 'Who made the event, as its publisher said; it is not in the event'),
    receivers,
    trace,
  },
  { $id: 'KeptEvent', title: 'KeptEvent', examples: [examples.keptEvent] },
)
