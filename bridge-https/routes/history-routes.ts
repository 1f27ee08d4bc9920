import { type ErrorItem, errorItem, quote } from '../../event/error.ts'
import { isInstitutionUrn } from '../../event/urn.ts'
import { readObject } from '../../journal/history/event-row.ts'
import type { Found } from '../../journal/history/find.ts'
import type { History } from '../../journal/history/history.ts'
import type { Feed } from '../../validator/feed/feed.ts'
import type { Topics } from '../../validator/topics.ts'
import { refuse } from '../answer.ts'
import { KeptEvent, LivestreamEvents } from '../description/history-schemas.ts'
import { ErrorWithItems, PlainError } from '../description/schemas.ts'
import type { GuardedRoute, QueryParameter } from './route.ts'

/** What stands behind the routes. */
export interface HistoryParts {
  history: Pick<History, 'messages' | 'find'>
  topics: Pick<Topics, 'get'>
  feed: () => Feed | undefined
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

/** What became of events (design.md §9): those of a livestream, and what the institution of the user published. */
export function historyRoutes({ history, topics, feed }: HistoryParts): GuardedRoute[] {
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
        400: { description: 'Invalid parameter', schema: ErrorWithItems },
        404: { description: 'There is no such livestream', schema: PlainError },
      },
      async handle({ params, query: given }) {
        const { livestreamId = '' } = params
        const wrong = Object.entries(query).flatMap(([name, range]) => checkNumber(name, given[name], range))
        if (wrong.length > 0) return refuse(400, wrong)
        if (!feed()?.byId(livestreamId) && !topics.get(livestreamId))
          return refuse(404, undefined, 'Livestream not found')
        const limit = given.limit === undefined ? defaultLimit : Number(given.limit)
        const before = given.before === undefined ? undefined : Number(given.before)
        const { messages, next } = await history.messages(livestreamId, { limit, before })
        const events = messages.map(({ position, at, payload }) => ({
          ...{ position, acceptedAt: new Date(at).toISOString(), event: readObject(payload) },
        }))
        return { status: 200, body: { events, next, trace: null } }
      },
    },
    {
      method: 'GET',
      // The name of the parameter is that of the publish route: for a path there can be one only.
      path: '/events/{eventName}',
      id: 'getEvent',
      summary: 'Show what became of an event of the institution',
      description:
        'The institution is that of the user, whichever of its publishers sent the event, over MQTT or HTTPS. Of an event that was repeated it is the first one that is kept.',
      tag: 'History',
      permission: 'publish',
      params: { eventName: { description: 'Id of the event, as the answer or the feedback gave it' } },
      answers: {
        200: { description: 'The event with its report', schema: KeptEvent },
        404: {
          description: 'The institution published no such event, or it is not kept any more',
          schema: PlainError,
        },
      },
      async handle({ params }, { institutionId }) {
        const { eventName: id = '' } = params
        const { found, isWhole } = isInstitutionUrn(institutionId)
          ? await history.find.ofInstitution(id, institutionId)
          : { isWhole: true }
        if (found?.report) return { status: 200, body: shown(found.report, found) }
        return refuse(
          404,
          undefined,
          isWhole ? 'Event not found' : 'Event not found: too many around its time',
        )
      },
    },
  ]
}

function shown(report: NonNullable<Found['report']>, { messages: [message] }: Found) {
  return {
    position: report.position,
    decidedAt: new Date(report.at).toISOString(),
    report: readObject(report.payload),
    event: message ? readObject(message.payload) : null,
    trace: null,
  }
}

function checkNumber(
  name: string,
  value: unknown,
  { minimum, maximum }: { minimum: number; maximum: number },
): ErrorItem[] {
  if (value === undefined) return []
  const path = `.query.${name}`
  const expected = `expected a whole number from ${minimum} to ${maximum}`
  if (typeof value !== 'string' || !/^-?[0-9]{1,20}$/.test(value))
    return [errorItem('type.openapi.validation', path, `${quote(value)}, ${expected}`)]
  if (Number(value) < minimum) return [errorItem('minimum.openapi.validation', path, `${value}, ${expected}`)]
  if (Number(value) > maximum) return [errorItem('maximum.openapi.validation', path, `${value}, ${expected}`)]
  return []
}
