import { isInstitutionUrn } from '../../event/format.ts'
import type { Receivers } from '../../event/outcome-schemas.ts'
import type { Entry } from '../../journal/entry.ts'
import { readObject } from '../../journal/history/event-row.ts'
import type { Found } from '../../journal/history/find.ts'
import type { History } from '../../journal/history/history.ts'
import type { Feed } from '../../validator/feed/feed.ts'
import type { Topics } from '../../validator/topics.ts'
import { jsonText, refuse } from '../answer.ts'
import { KeptEvent, LivestreamEvents } from '../description/history-schemas.ts'
import type { KnownUser } from '../users/users.ts'
import type { EventRate } from './event-routes.ts'
import { createOneAtATime, tooManyQuestions } from './one-at-a-time.ts'
import { checkNumber } from './parameters.ts'
import type { GuardedRoute, QueryParameter } from './route.ts'

/** The parts of the hub that these routes ask. */
interface HistoryParts {
  history: Pick<History, 'messages' | 'find'>
  topics: Pick<Topics, 'stored'>
  feed: () => Feed | undefined
  /** The receivers of an event: the webhooks of the institution, if the user may see them, and the number of others. */
  receiversOf: (found: Found, user: KnownUser) => Promise<Receivers>
  /** The publish rate of a user. Reading the history uses up the same rate. */
  rate: EventRate
}

const defaultLimit = 50
const query = {
  limit: { description: `At most so many events; ${defaultLimit} without it`, minimum: 1, maximum: 200 },
  before: {
    description: 'Only events before this position: `next` of the answer before',
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
  },
} satisfies Record<string, QueryParameter>

/** Routes to past events of a livestream or of the user's institution (design.md §9). */
export function historyRoutes({ history, topics, feed, rate, receiversOf }: HistoryParts): GuardedRoute[] {
  const oneAtATime = createOneAtATime(rate)
  return [
    {
      method: 'GET',
      path: '/livestreams/{livestreamId}/events',
      id: 'listEvents',
      summary: 'List the last events of a livestream, the newest first',
      description:
        'Events of all kinds that were published for the livestream, in the order in which the hub took them. An answer may have fewer than `limit` although there are more: `next` tells.',
      tag: 'History',
      permission: 'subscribe',
      params: { livestreamId: { description: 'Id of the livestream, `urn:org:permanent-livestream:<id>`' } },
      query,
      answers: {
        200: { description: 'A page of events', schema: LivestreamEvents },
        400: 'Invalid parameter',
        404: 'There is no such livestream',
        429: tooManyQuestions,
      },
      async handle(call, user) {
        const { params, query: given } = call
        const { livestreamId = '' } = params
        const wrong = Object.entries(query).flatMap(([name, range]) => checkNumber(name, given[name], range))
        if (wrong.length > 0) return refuse(400, wrong)
        if (!feed()?.byId.get(livestreamId) && !topics.stored.get(livestreamId))
          return refuse(404, undefined, 'Livestream not found')
        const limit = given.limit === undefined ? defaultLimit : Number(given.limit)
        const before = given.before === undefined ? undefined : Number(given.before)
        return oneAtATime(call, user, async () => {
          const { messages, next } = await history.messages(livestreamId, { limit, before })
          const bytes = messages.reduce((sum, { payload }) => sum + payload.length, 0)
          return { answer: jsonText(pageOf(messages, next)), bytes }
        })
      },
    },
    {
      method: 'GET',
      // The publish route has the same path, so this parameter has the same name.
      path: '/events/{eventName}',
      id: 'getEvent',
      summary: 'Show what became of an event of the institution',
      description:
        'The institution is that of the user, whichever of its publishers sent the event, over MQTT or HTTPS. Of an event that was repeated it is the first one that is kept.',
      tag: 'History',
      permission: 'publish',
      params: { eventName: { description: 'Id of the event, as the answer or the feedback gave it' } },
      answers: {
        200: { description: 'The event and its report, as far as they are kept', schema: KeptEvent },
        404: 'The institution published no such event, or it is not kept any more',
        429: tooManyQuestions,
      },
      async handle(call, user) {
        const { eventName: id = '' } = call.params
        return oneAtATime(call, user, async () => {
          const { institutionId } = user
          const { found, isWhole } = isInstitutionUrn(institutionId)
            ? await history.find.ofInstitution(id, institutionId)
            : { isWhole: true }
          const entries = [found?.report, found?.messages[0]]
          const bytes = entries.reduce((sum, entry) => sum + (entry?.payload.length ?? 0), 0)
          const body = found && shown(found, await receiversOf(found, user))
          if (body) return { answer: { status: 200, body }, bytes }
          const message = isWhole ? 'Event not found' : 'Event not found: too many around its time'
          return { answer: refuse(404, undefined, message), bytes }
        })
      },
    },
  ]
}

/** The stored payloads are JSON already, so they are not parsed again. */
function pageOf(messages: readonly Entry[], next: number | null): string {
  const events = messages.map(({ position, at, payload }) => {
    const acceptedAt = new Date(at).toISOString()
    return `{"position":${position},"acceptedAt":"${acceptedAt}","event":${payload.toString()}}`
  })
  return `{"events":[${events.join()}],"next":${next},"trace":null}`
}

function shown({ report, messages: [message] }: Found, receivers: Receivers) {
  const { position, at } = report ?? message ?? {}
  if (at === undefined) return undefined
  return {
    position,
    decidedAt: new Date(at).toISOString(),
    report: report ? readObject(report.payload) : null,
    event: message ? readObject(message.payload) : null,
    creator: report?.creator ?? null,
    receivers,
    trace: null,
  }
}
