import { maxSecrets, signing } from '../../delivery/webhook/signature.ts'
import type { Standings } from '../../delivery/webhook/standing.ts'
import type { PushSubscription } from '../../delivery/webhook/subscription.ts'
import { maxSubscriptions, type PushSubscriptions } from '../../delivery/webhook/subscriptions.ts'
import { allLivestreams } from '../../event/delivery-fields.ts'
import { quote } from '../../event/error.ts'
import { parseInstant } from '../../event/format.ts'
import { Type } from '../../event/type.ts'
import { inTurns, jsonInTurns } from '../../telemetry/turns.ts'
import type { Topics } from '../../validator/topics.ts'
import { type Answer, httpsError, jsonText, refuse, refuseUntil } from '../answer.ts'
import { unreadIn } from '../body.ts'
import { Deleted, SigningSecret, SubscribeBody, Subscription } from '../description/schemas.ts'
import type { LegacyNames } from '../legacy-names.ts'
import type { KnownUser } from '../users/users.ts'
import type { EventRate } from './event-routes.ts'
import { createOneAtATime, tooManyQuestions } from './one-at-a-time.ts'
import type { Call, GuardedRoute } from './route.ts'

const { perInstitution, perLivestream } = maxSubscriptions
const limits = `expected at most ${perLivestream} for one livestream, and ${perInstitution} in all`

/** The path parameter of a subscription, and the 404 of one that the institution does not have. */
export const params = { name: { description: 'Name of the subscription' } }
export const noSuchSubscription = 'The institution has no such subscription'
export const noSubscription = refuse(404, undefined, 'Subscription not found')

/** Writes a change into the audit log: `work` calls `note` before it changes anything. */
interface AuditOfChanges {
  change<T>(who: string, action: string, work: (note: Note) => Promise<T>): Promise<T>
}
type Note = (target: string, detail: unknown) => Promise<void>

/** Push subscriptions: every user of an institution manages all subscriptions of the institution (service.md §1). */
export function subscriptionRoutes(parts: {
  subscriptions: Pick<
    PushSubscriptions,
    'add' | 'addSecret' | 'get' | 'ofInstitution' | 'remove' | 'removeSecrets'
  > & {
    standing: Standings['of']
  }
  topics: Pick<Topics, 'stored'>
  names: LegacyNames
  /** Why events cannot be sent to a URL. Undefined: they can. */
  checkUrl: (url: string) => Promise<string | undefined>
  audit: AuditOfChanges
  rate: EventRate
}): GuardedRoute[] {
  const { subscriptions, topics, checkUrl, audit, rate } = parts
  const shown = (subscription: PushSubscription) => fieldsOf(subscription, parts)
  const oneAtATime = createOneAtATime(rate)
  const base = { tag: 'Subscriptions', track: 'push', permission: 'subscribe' } as const
  return [
    {
      ...base,
      method: 'POST',
      path: '/subscriptions',
      id: 'subscribe',
      summary: 'Subscribe a webhook to a topic',
      description:
        'With `from` the webhook begins with the events that were accepted from then on: each once, in their order, and before what is accepted afterwards. These are the ones that the hub still has, and at most as many as its queue holds, the newest.',
      body: [SubscribeBody],
      answers: {
        201: { description: 'Created', schema: Subscription },
        404: 'There is no such topic, or a livestream of the list has none',
        429: tooManyQuestions,
      },
      async handle(call, { institutionId, userId }) {
        const { body, at } = call
        const {
          url,
          contact,
          topic,
          from,
          livestreams,
          kinds,
          types,
          maxAge,
          delay = 0,
          ordering,
        } = body as SubscribeBody
        const begins = from === undefined ? undefined : parseInstant(from)
        if (begins !== undefined && begins > at) {
          return refuse(400, [
            httpsError('subscription.from', `got ${quote(from)}, expected an instant that has passed`),
          ])
        }
        if (livestreams?.includes(allLivestreams) && livestreams.length > 1) {
          return refuse(400, [
            httpsError('subscription.livestreams', `got ${quote(livestreams)}, expected ids, or ["*"] alone`),
          ])
        }
        const wrong = await checkUrl(url)
        if (wrong !== undefined) return refuse(400, [httpsError('webhook.url', wrong)])
        // `checkUrl` is not part of the change: a slow name server must not hold up the user's other changes.
        return oneChange(call, userId, async () => {
          const { id: topicId } = topics.stored.get(topic) ?? {}
          if (topicId === undefined) return refuse(404, undefined, 'Topic not found')
          const unknown = livestreams?.find((id) => id !== allLivestreams && !topics.stored.has(id))
          if (unknown !== undefined)
            return refuse(404, undefined, `Topic not found: livestreams has ${quote(unknown)}`)
          const created = await subscriptions.add({
            topicId,
            ...(livestreams !== undefined && { livestreams: [...new Set(livestreams)] }),
            ...(kinds !== undefined && { kinds: [...new Set(kinds)] }),
            ...(types !== undefined && { types: [...new Set(types)] }),
            url,
            contact,
            institutionId,
            createdBy: userId,
            ...(begins !== undefined && { from: new Date(begins).toISOString() }),
            ...(maxAge !== undefined && { maxAge }),
            ...(delay > 0 && { delay }),
            ...(ordering === 'livestream' && { ordering }),
          })
          if (!created) return refuse(400, [httpsError('subscription.limit', limits)])
          const warnings = unreadIn(body as SubscribeBody, SubscribeBody)
          return { status: 201, body: { ...shown(created), ...(warnings.length > 0 && { warnings }) } }
        })
      },
    },
    {
      ...base,
      method: 'GET',
      path: '/subscriptions',
      id: 'listSubscriptions',
      summary: 'List the subscriptions of the institution',
      answers: {
        200: {
          description: 'All subscriptions of the institution',
          schema: Type.Array(Type.Unsafe({ $ref: 'Subscription' })),
        },
        429: tooManyQuestions,
      },
      handle: (call, { institutionId, userId }) =>
        oneAtATime(call, { userId, about: 'list' }, async () => {
          const list = await jsonInTurns(await inTurns(subscriptions.ofInstitution(institutionId), shown))
          return { answer: jsonText(list), bytes: Buffer.byteLength(list) }
        }),
    },
    {
      ...base,
      method: 'GET',
      path: '/subscriptions/{name}',
      id: 'getSubscription',
      summary: 'Show a subscription',
      params,
      answers: { 200: { description: 'The subscription', schema: Subscription }, 404: noSuchSubscription },
      handle(call, { institutionId }) {
        const found = subscriptions.get(institutionId, call.params.name ?? '')
        return found ? { status: 200, body: shown(found) } : noSubscription
      },
    },
    {
      ...base,
      method: 'DELETE',
      path: '/subscriptions/{name}',
      id: 'deleteSubscription',
      summary: 'Delete a subscription',
      params,
      answers: {
        200: { description: 'Deleted', schema: Deleted },
        404: noSuchSubscription,
        429: tooManyQuestions,
      },
      handle: (call, { institutionId, userId }) =>
        oneChange(call, userId, async () => {
          const removed = await subscriptions.remove(institutionId, call.params.name ?? '')
          return removed ? { status: 200, body: { valid: true, trace: null } } : noSubscription
        }),
    },
    {
      ...base,
      method: 'POST',
      path: '/subscriptions/{name}/secret',
      id: 'makeSecret',
      summary: 'Make a secret that signs the pushes of a subscription',
      description: `From now on each push has the header fields of Standard Webhooks, \`webhook-id\`, \`webhook-timestamp\` and \`webhook-signature\`, beside its token. A secret that was there before signs, too, for 24 hours. At most ${maxSecrets} sign at a time.`,
      params,
      answers: {
        200: { description: 'The secret, which no other answer shows', schema: SigningSecret },
        404: noSuchSubscription,
        429: tooManyQuestions,
      },
      handle: (call, { institutionId, userId, email }) =>
        ofSubscription(call, { institutionId, userId }, async (found) => {
          const { name, topicId } = found
          const full = whyNoSecret(found, call.at)
          if (full) return full
          const made = await audit.change(email, 'subscriptions.make-secret', async (note) => {
            await note(name, { institutionId, livestreamId: topicId })
            return subscriptions.addSecret(name)
          })
          if (made) return { status: 200, body: made }
          // Meanwhile another user made one, or removed the subscription.
          const changed = subscriptions.get(institutionId, name)
          return changed && whyNoSecret(changed, call.at)
        }),
    },
    {
      ...base,
      method: 'DELETE',
      path: '/subscriptions/{name}/secret',
      id: 'deleteSecrets',
      summary: 'Delete all secrets of a subscription',
      description: 'Its pushes have their token alone.',
      params,
      answers: {
        200: { description: 'Deleted, or there was none', schema: Deleted },
        404: noSuchSubscription,
        429: tooManyQuestions,
      },
      handle: (call, { institutionId, userId, email }) =>
        ofSubscription(call, { institutionId, userId }, async ({ name, topicId, secrets }) => {
          if (secrets !== undefined) {
            await audit.change(email, 'subscriptions.remove-secrets', async (note) => {
              await note(name, { institutionId, livestreamId: topicId })
              return subscriptions.removeSecrets(name)
            })
          }
          return { status: 200, body: { valid: true, trace: null } }
        }),
    },
  ]

  /** Changes a subscription of the institution. `change` answers undefined if the subscription is gone. */
  function ofSubscription(
    call: Call,
    { institutionId, userId }: Pick<KnownUser, 'institutionId' | 'userId'>,
    change: (found: PushSubscription) => Promise<Answer | undefined>,
  ): Promise<Answer> {
    return oneChange(call, userId, async () => {
      const found = subscriptions.get(institutionId, call.params.name ?? '')
      const answer = found && (await change(found))
      return answer ?? noSubscription
    })
  }

  /**
   * Makes the changes of a user one at a time. Each change costs one event of the publish rate.
   *
   * All institutions share one lock for changes. Many changes of one user at once would hold up other institutions.
   */
  function oneChange(call: Call, userId: string, change: () => Promise<Answer>): Promise<Answer> {
    return oneAtATime(call, { userId, about: 'change' }, async () => ({ answer: await change(), bytes: 0 }))
  }
}

/** The refusal of one more secret. Undefined: the subscription may have one. `at`: milliseconds since the epoch. */
function whyNoSecret({ secrets }: PushSubscription, at: number): Answer | undefined {
  const current = signing(secrets, at)
  if (current.length < maxSecrets) return undefined
  const ends = current.flatMap(({ until }) => (until === undefined ? [] : [Date.parse(until)]))
  const message = `${maxSecrets} secrets sign already: delete them, or wait until one ends`
  return refuseUntil(429, Math.ceil((Math.min(...ends) - at) / 1000), message)
}

/** The fields of service.md §2.8 in their order, and the state (design.md §9). */
function fieldsOf(
  subscription: PushSubscription,
  { names, subscriptions }: { names: LegacyNames; subscriptions: { standing: Standings['of'] } },
) {
  const { name, topicId, ackDeadlineSeconds, retryPolicy, serviceAccount, url, contact } = subscription
  return {
    type: 'PUBSUB',
    method: 'PUSH',
    name,
    path: names.subscriptionPath(name),
    topic: { id: topicId, name: names.topicName(topicId), path: names.topicPath(topicId) },
    ackDeadlineSeconds,
    retryPolicy,
    serviceAccount,
    url,
    contact,
    institutionId: subscription.institutionId,
    ...(subscription.from !== undefined && { from: subscription.from }),
    ...(subscription.livestreams !== undefined && { livestreams: subscription.livestreams }),
    ...(subscription.kinds !== undefined && { kinds: subscription.kinds }),
    ...(subscription.types !== undefined && { types: subscription.types }),
    ...(subscription.maxAge !== undefined && { maxAge: subscription.maxAge }),
    ...(subscription.delay !== undefined && { delay: subscription.delay }),
    ...(subscription.ordering !== undefined && { ordering: subscription.ordering }),
    ...subscriptions.standing(subscription),
  }
}
