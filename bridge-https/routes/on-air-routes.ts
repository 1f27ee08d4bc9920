import { errorItem, quote } from '../../event/error.ts'
import { parseInstant } from '../../event/format.ts'
import type { Entry } from '../../journal/entry.ts'
import type { OnAir } from '../../on-air/on-air.ts'
import { viewOf } from '../../on-air/view.ts'
import type { Feed } from '../../validator/feed/feed.ts'
import { type Answer, httpsError, jsonText, refuse } from '../answer.ts'
import { LivestreamNow, LivestreamsNow, PlayedAt } from '../description/on-air-schemas.ts'
import { answerKept, type Kept, keepText, notModified } from '../kept.ts'
import type { EventRate } from './event-routes.ts'
import { createKeptNow } from './kept-now.ts'
import { createOneAtATime, tooManyQuestions } from './one-at-a-time.ts'
import { checkNumber, valuesOf } from './parameters.ts'
import type { Call, GuardedRoute, QueryParameter } from './route.ts'

/** The parts of the hub that these routes ask. */
interface OnAirParts {
  onAir: OnAir
  feed: () => Feed | undefined
  /** Visitors may read without a log-in (`HUB_PUBLIC_PAGE`). */
  isPagePublic: boolean
  /** Reading the past uses up the publish rate of a user. */
  rate: EventRate
}

/** Livestreams in one answer. */
export const mostLivestreams = 200

export const delay = {
  description: 'Seconds by which all is shown later, for players that run behind',
  minimum: 0,
  maximum: 300,
} satisfies QueryParameter

export const livestreamId = { description: 'Id of the livestream, `urn:org:permanent-livestream:<id>`' }

export const livestreamList = {
  description: `Id of a livestream; may repeat, at most ${mostLivestreams}. Without it: all that may be seen`,
  isList: true,
} satisfies QueryParameter

const anInstant = 'expected an ISO 8601 instant with offset such as 2026-01-31T12:00:00Z'
export const notReached = 'There is no such livestream, or the journal does not reach back so far'

/** Routes to what is on air, now and at a time, over plain HTTPS (open.md §4). */
export function onAirRoutes(parts: OnAirParts): GuardedRoute[] {
  const { onAir, isPagePublic, rate } = parts
  const keptNow = createKeptNow(parts)
  const oneAtATime = createOneAtATime(rate)
  const read = {
    method: 'GET',
    tag: 'On air',
    permission: 'subscribe',
    readers: true,
    crossOrigin: true,
  } as const
  return [
    {
      ...read,
      path: '/livestreams/{livestreamId}/now',
      id: 'livestreamNow',
      summary: 'What a livestream shows now',
      strangers: isPagePublic,
      params: { livestreamId },
      query: { delay },
      answers: {
        200: { description: 'What it shows', schema: LivestreamNow },
        304: notModified,
        400: 'Invalid parameter',
        404: notReached,
      },
      async handle(call) {
        const wrong = checkNumber('delay', call.query.delay, delay)
        if (wrong.length > 0) return refuse(400, wrong)
        const view = viewOf(call.filters)
        const [found] = await keptNow([call.params.livestreamId ?? ''], view, delayMsOf(call))
        return found ? answerNow(found, call) : refuse(404, undefined, 'Livestream not found')
      },
    },
    {
      ...read,
      path: '/now',
      id: 'livestreamsNow',
      summary: 'What several livestreams show now, or all',
      description: `At most ${mostLivestreams} in one answer: the header Link has the address of the next ones.`,
      strangers: isPagePublic,
      query: {
        livestream: livestreamList,
        after: { description: 'Only livestreams with a greater id: from the header Link', isList: false },
        delay,
      },
      answers: {
        200: { description: 'What they show', schema: LivestreamsNow },
        304: notModified,
        400: 'Invalid parameter',
        404: notReached,
      },
      async handle(call) {
        const { query } = call
        const asked = valuesOf(query.livestream)
        const wrong = [...checkNumber('delay', query.delay, delay), ...checkCount(asked)]
        if (wrong.length > 0) return refuse(400, wrong)
        const view = viewOf(call.filters)
        const unknown = asked.find((id) => !onAir.livestreams.find(id, view))
        if (unknown !== undefined) return refuse(404, undefined, `Livestream not found: ${quote(unknown)}`)
        const all = asked.length > 0 ? asked : await onAir.livestreams.ids(view)
        const after = query.after === undefined ? '' : String(query.after)
        const from = asked.length > 0 ? 0 : firstAfter(all, after)
        const ids = all.slice(from, from + mostLivestreams)
        const found = await keptNow(ids, view, delayMsOf(call))
        // A reader may name livestreams that the hub has never heard of.
        const known = found.filter((one) => one !== undefined)
        if (ids.length > 0 && found.length === 0) return refuse(404, undefined, notReached)
        const texts = known.map(({ text }) => text.toString())
        const answer = answerNow(keepText(`[${texts.join()}]`), call)
        const last = ids.at(-1)
        if (last === undefined || from + ids.length >= all.length) return answer
        const next = new URLSearchParams({
          after: last,
          ...(query.delay !== undefined && { delay: String(query.delay) }),
        })
        return { ...answer, headers: { ...answer.headers, link: `</now?${next}>; rel="next"` } }
      },
    },
    {
      ...read,
      path: '/livestreams/{livestreamId}/at/{time}',
      id: 'livestreamAt',
      summary: 'What a livestream played at a time',
      description:
        'By event time, as far as the history of the livestream goes back. Not for visitors of a public page.',
      params: {
        livestreamId,
        time: { description: 'ISO 8601 with UTC offset; not ahead' },
      },
      answers: {
        200: { description: 'What played', schema: PlayedAt },
        400: 'Invalid parameter',
        404: notReached,
        429: tooManyQuestions,
      },
      async handle(call, user) {
        const { livestreamId: id = '', time = '' } = call.params
        const at = parseInstant(time)
        if (at === undefined)
          return refuse(400, [
            errorItem('format.openapi.validation', '.params.time', `${quote(time)}, ${anInstant}`),
          ])
        if (at > call.at) return refuse(400, [httpsError('time.ahead', time)])
        const view = viewOf(call.filters)
        if (!onAir.livestreams.find(id, view)) return refuse(404, undefined, 'Livestream not found')
        return oneAtATime(call, { userId: call.holder ?? user.userId }, async () => {
          const { played, readBytes: bytes } = await onAir.playedAt(id, at)
          if (!played)
            return { answer: refuse(404, undefined, 'The journal does not reach back so far'), bytes }
          const { topic } = played.playing
          if (!view.allows(topic))
            return { answer: refuse(404, undefined, `What may be read here is without ${topic}`), bytes }
          return { answer: jsonText(textOf(at, played)), bytes }
        })
      },
    },
  ]

  function answerNow(kept: Kept, call: Call): Answer {
    const answer = answerKept(kept, call.header)
    // Only what strangers may see as well may be kept by caches between.
    const isForAll = isPagePublic && viewOf(call.filters).isWhole
    return {
      ...answer,
      headers: {
        ...(answer.status === 200 && { 'content-type': 'application/json; charset=utf-8' }),
        ...answer.headers,
        // As open.md §4 has it, so without `stale-while-revalidate`.
        'cache-control': `${isForAll ? 'public' : 'private'}, max-age=1`,
      },
    }
  }
}

/** Milliseconds. */
export function delayMsOf({ query }: Pick<Call, 'query'>): number {
  return Number(query.delay ?? 0) * 1000
}

export function checkCount(livestreams: readonly string[]) {
  if (livestreams.length <= mostLivestreams) return []
  const detail = `${livestreams.length}, expected at most ${mostLivestreams}`
  return [errorItem('maxItems.openapi.validation', '.query.livestream', detail)]
}

/** Index of the first id behind this one. */
function firstAfter(ids: readonly string[], after: string): number {
  const index = ids.findIndex((id) => id > after)
  return index < 0 ? ids.length : index
}

function textOf(at: number, played: { before: Entry | null; playing: Entry; after: Entry | null }): string {
  const text = (entry: Entry | null) => entry?.payload.toString() ?? 'null'
  const { before, playing, after } = played
  return `{"at":"${new Date(at).toISOString()}","before":${text(before)},"playing":${text(playing)},"after":${text(after)}}`
}
