import type { Deliveries } from '../../delivery/deliveries.ts'
import { pausedReason } from '../../delivery/webhook/standing.ts'
import type { PushSubscriptions } from '../../delivery/webhook/subscriptions.ts'
import { type ErrorItem, quote } from '../../event/error.ts'
import { parseInstant } from '../../event/format.ts'
import { maxPayloadBytes } from '../../validator/decide.ts'
import { httpsError, refuse } from '../answer.ts'
import { compileBody } from '../body.ts'
import { PluginWork, PushBody, ReplayAnswer, ReplayBody, TraceAnswer } from '../description/schemas.ts'
import type { Tokens } from '../users/tokens.ts'
import type { Route } from './route.ts'
import { noSubscription } from './subscription-routes.ts'

/** The parts of the hub that these two routes ask. */
interface PubsubParts {
  subscriptions: Pick<PushSubscriptions, 'get'>
  tokens: Tokens
  publicUrl: () => string
  deliveries: Pick<Deliveries, 'deadLetters' | 'replay' | 'replaySince' | 'work'>
}

/**
 * Largest body of plugin work, bytes. There is room for an event and a plugin entry, both in base64. The plugin entry
 * may be nearly as large as the event. All other fields together have 64 KiB.
 */
const workBytes = Math.ceil((2 * maxPayloadBytes * 4) / 3 / 1024) * 1024 + 65_536

/** The routes of `/pubsub` (design.md §9): replays for users, and plugin work that the hub pushes to itself. */
export function pubsubRoutes({ subscriptions, tokens, publicUrl, deliveries }: PubsubParts): Route[] {
  const base = { path: '/pubsub', tag: 'Subscriptions', track: 'push' } as const
  return [
    {
      ...base,
      method: 'PUT',
      id: 'replay',
      summary: 'Send messages again that could not be delivered, and with `since` all from then on',
      description:
        'Dead letters are sent first. With `since` come all events of the livestream that were accepted from then on, delivered or not, also from before the subscription was made, as far as the hub still has them; what waits already is not sent twice. At most as many are added as the queue has room for, the newest. Everything keeps its `messageId` and stands behind what waits.',
      permission: 'subscribe',
      body: [ReplayBody],
      answers: {
        200: { description: 'They are on their way', schema: ReplayAnswer },
        404: 'The institution has no such subscription, or the subscription no such dead letter',
        409: 'The subscription is paused: nothing is sent, and nothing replayed',
      },
      async handle({ body, at }, { institutionId }) {
        const { subscription, messageId, since } = body as ReplayBody
        const from = since === undefined ? undefined : parseInstant(since)
        if (from !== undefined && messageId !== undefined) {
          return refuse(400, [
            httpsError('replay.since', 'leave out messageId, which is for one dead letter'),
          ])
        }
        if (from !== undefined && from > at) {
          return refuse(400, [
            httpsError('replay.since', `got ${quote(since)}, expected an instant that has passed`),
          ])
        }
        const found = subscriptions.get(institutionId, subscription)
        if (!found) return noSubscription
        if (found.pausedAt !== undefined) {
          return refuse(409, undefined, `The subscription is ${pausedReason(found)}`)
        }
        const ids = deliveries.deadLetters(subscription).map((letter) => letter.messageId)
        if (messageId !== undefined && !ids.includes(messageId)) {
          return refuse(404, undefined, 'Dead letter not found')
        }
        const letters = await deliveries.replay(subscription, messageId)
        const earlier = from === undefined ? 0 : await deliveries.replaySince(subscription, from)
        return { status: 200, body: { replayed: letters + earlier, trace: null } }
      },
    },
    {
      ...base,
      method: 'POST',
      id: 'push',
      summary: 'Take plugin work from the hub',
      description: 'Only with a token that the hub made for this URL.',
      admits: (bearer) => tokens.isService(bearer, `${publicUrl()}/pubsub`),
      body: [PushBody],
      bodyBytes: workBytes,
      answers: {
        201: { description: 'Queued for its target', schema: TraceAnswer },
        404: 'There is no target for it',
      },
      async handle({ body }) {
        const { messageId, data } = (body as PushBody).message
        const read = readPluginWork(Buffer.from(data, 'base64'))
        if ('errors' in read) return refuse(400, read.errors.map(belowData))
        return (await deliveries.work(messageId, read.value as PluginWork))
          ? { status: 201, body: { trace: null } }
          : refuse(404, undefined, 'Plugin target not found')
      },
    },
  ]
}

const readPluginWork = compileBody([PluginWork])

/** Turns a path within plugin work into a path within the request. */
function belowData(error: ErrorItem): ErrorItem {
  return { ...error, path: error.path.replace('.body', '.body.message.data') }
}
