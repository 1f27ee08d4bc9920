import { type ErrorItem, errorItem, quote } from '../../event/error.ts'
import { isRecord } from '../../event/json.ts'
import { eventKinds } from '../../event/kind.ts'
import { costOf, type PublishRate } from '../../listener/publish-rate.ts'
import type { LegacyResult } from '../../validator/legacy-answer.ts'
import type { Pipeline } from '../../validator/pipeline.ts'
import { belowBody, httpsError, refuse, refuseUntil } from '../answer.ts'
import { PublishAnswer } from '../description/schemas.ts'
import { createInFlight } from '../in-flight.ts'
import type { LegacyNames } from '../legacy-names.ts'
import type { Route } from './route.ts'

/** Names of the events that can be published over HTTPS (service.md §6.1). */
const taken = eventKinds.filter(({ doors }) => doors.includes('https'))
const eventNames = taken.map(({ name }) => name)

/** Seconds a publisher is asked to wait while there is no feed. */
const feedRetrySeconds = 60

/**
 * So much of one institution is decided and stored at a time. An event for one station has about a kilobyte. With more,
 * the events of others would wait behind whole commits of one institution.
 */
const inFlightBytes = 4 * 1024

/** How often a user may publish. */
export type EventRate = Pick<PublishRate, 'take' | 'charge'>

/** Publishing (service.md §4.1): the bytes go to the same pipeline as those of MQTT. */
export function eventRoutes(parts: {
  pipeline: Pick<Pipeline, 'publishLegacy'>
  names: LegacyNames
  rate: EventRate
}): Route[] {
  const { pipeline, names, rate } = parts
  const inFlight = createInFlight(inFlightBytes)
  return [
    {
      method: 'POST',
      path: '/events/{eventName}',
      id: 'publish',
      summary: 'Publish an event',
      description:
        'Each service has its own verdict, counted in `statuses`. `failed` counts topics that were created now: the event did not go out there, send it again. `blocked` counts services the user may not publish for. `errors` says why, service by service.',
      tag: 'Publishing',
      track: 'publish',
      permission: 'publish',
      params: { eventName: { description: 'Name of the event', enum: eventNames } },
      query: {
        dryRun: {
          description: '`true`: answers what would become of the event, and does nothing else',
          enum: dryRuns,
        },
      },
      body: [...new Set(taken.map(({ schema }) => schema))],
      rawBody: true,
      answers: {
        201: { description: 'Judged; see `statuses`', schema: PublishAnswer },
        404: 'The path cannot be decoded',
        429: 'Too many events; the header Retry-After says when to go on',
        503: 'There is no livestream feed; the header Retry-After says when to try again',
      },
      async handle({ params, query, body, at, started, isStillUser }, user) {
        const { eventName = '' } = params
        if (!eventNames.includes(eventName)) return refuse(400, [wrongName(eventName)])
        if (!dryRuns.includes(String(query.dryRun ?? 'false')))
          return refuse(400, [wrongDryRun(query.dryRun)])
        const dryRun = query.dryRun === 'true'
        if (!Buffer.isBuffer(body)) throw new Error('a raw body was not handed on')
        const leave = await inFlight.enter(user.institutionId, Math.max(1, body.length))
        if (!leave) return refuseUntil(429, 1)
        let result: LegacyResult
        try {
          // Other events of the institution may have been in front for a while.
          if (!(await isStillUser())) return refuse(403, [httpsError('authorization.invalid')])
          const waitMs = rate.take(user.userId, performance.now())
          if (waitMs > 0) return refuseUntil(429, Math.ceil(waitMs / 1000))
          const request = { payload: body, eventName, institutionId: user.institutionId, dryRun }
          const arrival = { at, started, clientId: null, userId: user.userId, bytes: body.length }
          result = await pipeline.publishLegacy(request, arrival, charge)
        } finally {
          leave()
        }
        if (result.outcome === 'failed') return refuse(500)
        if (result.outcome === 'invalid') {
          // Never 413: a body that is too large was refused before it came here.
          return refuse(400, belowBody(result.errors))
        }
        if (result.outcome === 'unavailable') {
          return refuseUntil(503, feedRetrySeconds, 'The livestream feed is not available, try again later')
        }
        const { statuses, errors, warnings, event } = result
        const why = errors.length > 0 ? { errors: belowBody(errors) } : {}
        const warned = warnings.length > 0 ? { warnings: belowBody(warnings) } : {}
        const dry = dryRun ? { dryRun } : {}
        return {
          status: 201,
          body: { statuses, ...why, ...warned, ...dry, event: named(event), trace: null },
        }
      },
    },
  ]

  function charge({ userId, bytes }: { userId: string; bytes: number }, livestreams: number): void {
    // `rate.take` has taken the first token.
    rate.charge(userId, costOf(bytes, livestreams) - 1, performance.now())
  }

  /** Gives the topics in an event's services their names in the HTTPS API. */
  function named(event: Record<string, unknown>): Record<string, unknown> {
    if (!Array.isArray(event.services)) return event
    return { ...event, services: event.services.map(namedService) }
  }

  function namedService(service: unknown): unknown {
    if (!isRecord(service) || !isRecord(service.topic)) return service
    const { id, status, messageId } = service.topic
    return { ...service, topic: { id, name: names.topicName(String(id)), status, messageId } }
  }
}

const dryRuns: readonly string[] = ['true', 'false']

function wrongDryRun(value: unknown): ErrorItem {
  return errorItem('enum.openapi.validation', '.query.dryRun', `${quote(value)}, expected true or false`)
}

function wrongName(eventName: string): ErrorItem {
  const detail = `${quote(eventName)}, expected one of ${eventNames.join(', ')}`
  return errorItem('event.name', '.params.eventName', detail)
}
