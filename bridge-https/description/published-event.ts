import type { Static } from 'typebox'
import { one, orNull, string } from '../../event/answer-fields.ts'
import { TrackEvent } from '../../event/kinds/track.ts'
import { Service } from '../../event/schema.ts'
import { Type } from '../../event/type.ts'
import { published } from './examples.ts'

/*
 * The event in the publish route's answer, with its id and an outcome for each service (service.md §2.3, §2.7).
 */

const services = published.event.services

export const ServiceTopic = Type.Object(
  {
    id: Type.String({ description: 'Id of the topic, which is that of the livestream' }),
    name: Type.String({ description: 'de.org.hub.<stage>.<percent-encoded id>' }),
    status: Type.Unsafe<'MESSAGE_SENT' | 'TOPIC_CREATED'>({
      ...one('MESSAGE_SENT', 'TOPIC_CREATED'),
      description:
        '`MESSAGE_SENT`: the event went out to the livestream. `TOPIC_CREATED`: the topic is new and the event did not go out, send it again.',
    }),
    messageId: orNull(string, 'Id of the message that went out, else null'),
  },
  {
    $id: 'ServiceTopic',
    title: 'ServiceTopic',
    description: 'What became of the event for one service',
    examples: services.map(({ topic }) => topic),
  },
)

export const PublishedService = Type.Object(
  {
    ...Service.properties,
    topic: Type.Optional(
      Type.Unsafe<Static<typeof ServiceTopic>>({
        $ref: 'ServiceTopic',
        description: 'Absent where the service is blocked',
      }),
    ),
  },
  {
    $id: 'PublishedService',
    title: 'PublishedService',
    additionalProperties: true,
    description: 'A service of a judged event, with its topic. Further fields are carried through.',
    examples: services,
  },
)

export const PublishedEvent = Type.Object(
  {
    ...TrackEvent.properties,
    services: Type.Array(Type.Unsafe<Static<typeof PublishedService>>({ $ref: 'PublishedService' }), {
      description: 'As sent, each accepted one with its id and its topic',
    }),
    id: orNull(string, 'Given by the service. Do not assume digits only. Null in a dry run.'),
  },
  {
    $id: 'PublishedEvent',
    title: 'PublishedEvent',
    additionalProperties: false,
    description: 'A judged event as stored',
    examples: [published.event],
  },
)
