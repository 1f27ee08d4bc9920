import { boolean, instant, one, orNull, string, stringOrNull } from '../../event/answer-fields.ts'
import { parseInstant } from '../../event/format.ts'
import { isRecord } from '../../event/json.ts'
import { feedbackTopic, inboxTopic } from '../../event/topic.ts'
import { Type } from '../../event/type.ts'
import { inTurns } from '../../telemetry/turns.ts'
import { text } from '../arguments.ts'
import { anId } from '../examples.ts'
import type { Of } from '../operation.ts'
import type { Own, OwnLivestream } from './own.ts'
import { type OwnOperation, shows } from './row.ts'

const states = ['silent', 'stale', 'on air', 'no event yet'] as const

const track = orNull(Type.Object({ title: stringOrNull, artist: stringOrNull, start: stringOrNull }))

const livestream = Type.Object({
  livestreamId: string,
  title: stringOrNull,
  state: one(...states),
  playing: track,
  next: track,
  lastEventAt: orNull(instant, 'when the hub accepted the newest event that is still shown; null: none is'),
  silentSince: orNull(instant, 'silent for longer than usual at this hour; null: it is not'),
  staleSince: orNull(
    instant,
    'when what plays should have ended, of a stale livestream; null: it is not stale',
  ),
  loopSince: orNull(
    instant,
    'since when it publishes again what came from it; null: it has not within the last hour',
  ),
  subscribers: Type.Integer({ description: 'connected clients that subscribe to it' }),
  subscribersOfAll: Type.Integer({ description: 'connected clients that subscribe to all livestreams' }),
  externalId: stringOrNull,
  publisherId: stringOrNull,
  isListed: boolean,
  publishTo: string,
  reportsOn: string,
  readOn: string,
})

export type ShownLivestream = Of<typeof livestream>

const columns = [
  ['Livestream', 'livestreamId', '{externalId}'],
  ['State', 'state', 'should have ended {staleSince}'],
  ['Plays', 'playing.title', '{playing.artist}'],
  ['Last event', 'lastEventAt', 'silent since {silentSince}', 'in a loop since {loopSince}'],
  ['Subscribers', 'subscribers'],
  ['Of all livestreams', 'subscribersOfAll'],
] as const

export const ownLivestreams = {
  'livestreams.list': shows('the livestreams of the institution, those that need a look first', {
    permission: 'publish',
    at: 'GET /institution/livestreams',
    args: {
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 5_000, description: 'a whole number from 1 to 5000' }),
      ),
    },
    example: { limit: 100 },
    console: {
      view: 'own-livestreams',
      title: 'Livestreams',
      columns,
      everySeconds: 10,
      empty: 'The feed lists no livestream of your institution.',
    },
    result: Type.Array(livestream),
    async run(own, { limit = 1_000 }) {
      const shown = await shownOf(own, await own.livestreams.all())
      return shown.sort(byUrgency).slice(0, limit)
    },
  }),
  'livestreams.show': shows('one livestream, with the topics and ids to configure', {
    permission: 'publish',
    at: 'GET /institution/livestreams/{livestreamId}',
    args: { livestreamId: text('the id of a livestream') },
    example: { livestreamId: anId },
    console: {
      view: 'own-livestreams',
      title: 'Livestream',
      of: 'institution.livestreams.list',
      by: 'livestreamId',
      everySeconds: 10,
      heading: 'title',
      columns: [
        'state',
        ['Plays', 'playing.title', '{playing.artist}'],
        ['Plays since', 'playing.start'],
        ['Should have ended', 'staleSince'],
        ['Next', 'next.title', '{next.artist}'],
        ['Last event', 'lastEventAt'],
        'silentSince',
        ['In a loop since', 'loopSince'],
        ['Subscribers', 'subscribers'],
        ['Subscribers of all livestreams', 'subscribersOfAll'],
        ['In the feed', 'isListed'],
      ],
      copy: {
        livestreamId: 'Livestream id',
        externalId: 'External id',
        publisherId: 'Publisher id',
        publishTo: 'Topic to publish to',
        reportsOn: 'Topic of reports',
        readOn: 'Topic filter to subscribe to',
      },
    },
    result: livestream,
    async run(own, { livestreamId: id }) {
      const [shown] = await shownOf(own, [own.livestreams.named(id)])
      if (!shown) throw new Error('a livestream was found and not shown')
      return shown
    },
  }),
} satisfies Record<string, OwnOperation>

async function shownOf(own: Own, livestreams: readonly OwnLivestream[]): Promise<ShownLivestream[]> {
  const { ofAll, byLivestream } = await own.livestreams.subscribers(livestreams)
  return inTurns(livestreams, async (one) => {
    const { playing, next, at, stale } = (await own.livestreams.nowOf(one)) ?? {}
    const silentSince = own.livestreams.silentSince(one)
    const lastEventAt = typeof at === 'string' ? at : null
    return {
      livestreamId: one.id,
      title: one.title,
      state: stateOf({ silentSince, stale: stale === true, lastEventAt }),
      playing: trackOf(playing),
      next: trackOf(next),
      lastEventAt,
      silentSince,
      staleSince: stale === true ? endOf(playing) : null,
      loopSince: own.livestreams.loopSince(one),
      subscribers: byLivestream[one.id] ?? 0,
      subscribersOfAll: ofAll,
      externalId: one.externalId,
      publisherId: one.publisherId,
      isListed: one.isListed,
      publishTo: inboxTopic(own.institutionId),
      reportsOn: feedbackTopic(own.institutionId),
      readOn: `radio/${one.id}/#`,
    }
  })
}

function stateOf(of: { silentSince: string | null; stale: boolean; lastEventAt: string | null }) {
  if (of.silentSince !== null) return 'silent'
  if (of.stale) return 'stale'
  return of.lastEventAt === null ? 'no event yet' : 'on air'
}

function trackOf(event: unknown) {
  if (!isRecord(event)) return null
  return { title: textOf(event.title), artist: textOf(event.artist), start: textOf(event.start) }
}

/** When a track ends by its own length. Null: it has no start. */
function endOf(event: unknown): string | null {
  const { start, length } = isRecord(event) ? event : {}
  const begun = parseInstant(String(start))
  if (begun === undefined) return null
  return new Date(begun + (typeof length === 'number' ? length * 1000 : 0)).toISOString()
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** Those that need a look first; of these, the longest silent one first. */
function byUrgency(a: ShownLivestream, b: ShownLivestream): number {
  const rank = states.indexOf(a.state) - states.indexOf(b.state)
  if (rank !== 0) return rank
  if (a.state === 'silent' || a.state === 'stale')
    return (a.lastEventAt ?? '') < (b.lastEventAt ?? '') ? -1 : 1
  return (a.title ?? a.livestreamId).localeCompare(b.title ?? b.livestreamId)
}
