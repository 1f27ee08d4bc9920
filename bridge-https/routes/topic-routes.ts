import { Type } from '../../event/type.ts'
import { inTurns, jsonInTurns } from '../../telemetry/turns.ts'
import type { Feed } from '../../validator/feed/feed.ts'
import type { Topics } from '../../validator/topics.ts'
import { jsonText, refuse } from '../answer.ts'
import { Topic } from '../description/schemas.ts'
import type { LegacyNames } from '../legacy-names.ts'
import type { EventRate } from './event-routes.ts'
import { createOneAtATime, tooManyQuestions } from './one-at-a-time.ts'
import type { GuardedRoute } from './route.ts'

/** Topics: one per livestream, from its first event on (service.md §1). */
export function topicRoutes(parts: {
  topics: Pick<Topics, 'ids' | 'stored'>
  feed: () => Feed | undefined
  names: LegacyNames
  rate: EventRate
}): GuardedRoute[] {
  const { topics, feed, names, rate } = parts
  const oneAtATime = createOneAtATime(rate)
  const base = { method: 'GET', tag: 'Topics', track: 'push', permission: 'subscribe' } as const
  return [
    {
      ...base,
      path: '/topics',
      id: 'listTopics',
      summary: 'List the topics',
      answers: {
        200: {
          description: 'All topics',
          schema: Type.Array(Type.Unsafe({ $ref: 'Topic' })),
        },
        429: tooManyQuestions,
      },
      handle: (call, user) =>
        oneAtATime(call, user, async () => {
          const list = await jsonInTurns(await inTurns(topics.ids(), shown))
          return { answer: jsonText(list), bytes: Buffer.byteLength(list) }
        }),
    },
    {
      ...base,
      path: '/topics/{topicName}',
      id: 'getTopic',
      summary: 'Show a topic',
      params: { topicName: { description: 'Name of the topic, percent-encoded like every part of a path' } },
      answers: {
        200: { description: 'The topic', schema: Topic },
        404: 'There is no such topic on this stage',
      },
      handle({ params }) {
        const topic = topics.stored.get(names.livestreamOf(params.topicName ?? '') ?? '')
        return topic ? { status: 200, body: shown(topic.id) } : refuse(404, undefined, 'Topic not found')
      },
    },
  ]

  function shown(id: string) {
    const livestream = feed()?.byId.get(id)
    const labels: Record<string, string> = livestream
      ? {
          title: livestream.title,
          externalId: livestream.externalId,
          publisherId: livestream.publisher.id,
          institutionId: livestream.institution.id,
        }
      : {}
    return { type: 'PUBSUB', id, name: names.topicName(id), path: names.topicPath(id), labels }
  }
}
