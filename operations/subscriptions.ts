import type { ShownQueue } from '../delivery/queue-list.ts'
import { coversLivestream } from '../delivery/webhook/selected.ts'
import type { PushSubscription } from '../delivery/webhook/subscription.ts'
import {
  boolean,
  instant,
  instantOrNull,
  integer,
  one,
  orNull,
  string,
  stringOrNull,
} from '../event/answer-fields.ts'
import { quote } from '../event/error.ts'
import { isLivestreamUrn } from '../event/format.ts'
import { attempt } from '../event/outcome-schemas.ts'
import { Type } from '../event/type.ts'
import { inTurns } from '../telemetry/turns.ts'
import { eitherOf, institution, limit, livestream, subscription, text } from './arguments.ts'
import { refusal, uniqueByPrefix, unknownName } from './errors.ts'
import { aQueue } from './examples.ts'
import { choose } from './lookups/choose.ts'
import { livestreamsNamed } from './lookups/livestreams.ts'
import type { NodeParts } from './node-parts.ts'
import { changes, loses, type Of, reads } from './operation.ts'
import { queueStates, standing, subscriptionStates, trouble } from './queues.ts'

const listed = {
  name: string,
  institutionId: string,
  livestream: Type.Object({ id: string, title: stringOrNull }),
  url: string,
  contact: string,
  ...standing,
  lastReason: stringOrNull,
  createdAt: instant,
}

export const shownSubscription = Type.Object({
  ...listed,
  ...trouble,
  from: instantOrNull,
  livestreams: orNull(
    Type.Array(string),
    'further livestreams, or `*` for all; null: that of the topic only',
  ),
  kinds: orNull(Type.Array(string), 'null: playing and next'),
  types: orNull(Type.Array(string), 'the types of tracks; null: all'),
  maxAge: Type.Union([integer, string, Type.Null()], {
    description: 'for how long an event is worth delivering: seconds, or `element`; null: always',
  }),
  ordering: one('all', 'livestream'),
  delay: Type.Integer({ description: 'milliseconds after its acceptance that an event is delivered' }),
  createdBy: string,
  serviceAccount: string,
  signed: Type.Boolean({ description: 'whether its pushes are signed with a secret, beside the token' }),
  ackDeadlineSeconds: integer,
  since: instant,
  paused: orNull(Type.Object({ at: instant, by: Type.Optional(string) })),
  disabled: orNull(Type.Object({ at: instant, by: string, reason: string })),
  attempts: Type.Array(attempt),
})
export const listedSubscription = Type.Object(listed)

export type ListedSubscription = Of<typeof listedSubscription>

/** Which subscription a command is about. */
export const named = { args: { name: subscription }, example: { name: aQueue } }

/** Maximum number of attempts that `subscriptions show` lists. `queues attempts` lists all. */
const shownAttempts = 10

/** The commands about push subscriptions of all institutions (design.md §4, service.md §6.2). */
export const subscriptionOperations = {
  'subscriptions.list': reads('webhooks of all institutions, oldest first, and how it goes with them', {
    args: {
      institution: Type.Optional(institution),
      livestream: Type.Optional(livestream),
      state: Type.Optional(text('the state of a subscription')),
      limit,
    },
    hubctl: {
      typed: {
        institution: ['--institution <urn>', 'only those of this institution'],
        livestream: [
          '--livestream <id>',
          'only those that get this livestream: its id, external id or title',
        ],
        state: ['--state <state>', `only those that are ${eitherOf(subscriptionStates)}`],
      },
      columns: [
        'name',
        ['INSTITUTION', 'institutionId'],
        ['LIVESTREAM', 'livestream.id'],
        ['TITLE', 'livestream.title'],
        'url',
        'contact',
        'state',
        'pending',
        'oldest',
        'deadLetters',
        'createdAt',
      ],
    },
    check({ livestream, state }) {
      if (livestream !== undefined && isId(livestream) && !isLivestreamUrn(livestream))
        return `livestream must be a livestream URN (urn:org:permanent-livestream:<id>), not ${quote(livestream)}`
      if (state === undefined || subscriptionStates.some((one) => one === state)) return undefined
      return `state must be one of ${subscriptionStates.join(', ')}, not ${quote(state)}`
    },
    result: Type.Array(listedSubscription),
    async run(node, { institution, livestream, state, limit }) {
      const { deliveries } = node
      const meant = livestream === undefined ? undefined : await livestreamsMeant(node, livestream)
      const byName = new Map((await deliveries.list()).map((queue) => [queue.name, queue]))
      const rows = await inTurns(deliveries.subscriptions.list(), (subscription) => {
        const queue = byName.get(subscription.name)
        const isMeant = meant === undefined || meant.some((id) => coversLivestream(subscription, id))
        return queue && isMeant ? [toListed(node, subscription, queue)] : []
      })
      return choose(rows.flat(), { institutionId: institution, state }, limit)
    },
  }),
  'subscriptions.show': reads('one of them with its last deliveries, and who paused or disabled it', {
    args: { name: text('the name of a subscription, or its beginning') },
    example: { name: aQueue },
    hubctl: { about: 'The last ten deliveries.' },
    result: shownSubscription,
    async run(node, args) {
      const { subscriptions, attempts: attemptsOf } = node.deliveries
      const names = subscriptions.list().map(({ name }) => name)
      const subscription = existing(node, uniqueByPrefix('subscription', args.name, names))
      const { name, from = null, createdBy, serviceAccount, ackDeadlineSeconds } = subscription
      const { livestreams = null, kinds = null, types = null, maxAge = null, delay = 0 } = subscription
      const ordering: 'all' | 'livestream' = subscription.ordering ?? 'all'
      const { pausedAt, pausedBy, disabledAt } = subscription
      const [queue, attempts] = await Promise.all([queueOf(node, name), attemptsOf(name)])
      const { aside, dropped, stale, failures, nextTry, lastReason } = queue
      return {
        ...toListed(node, subscription, queue),
        from,
        livestreams: livestreams && [...livestreams],
        kinds: kinds && [...kinds],
        types: types && [...types],
        maxAge,
        delay,
        ordering,
        createdBy,
        serviceAccount,
        signed: subscription.secrets !== undefined,
        ackDeadlineSeconds,
        aside,
        dropped,
        stale,
        since: subscriptions.standing(subscription).since,
        failures,
        nextTry,
        lastReason,
        paused: pausedAt === undefined ? null : { at: pausedAt, by: pausedBy },
        disabled: disabledAt === undefined ? null : { at: disabledAt, by: 'hub', reason: 'answered 410' },
        attempts: attempts.slice(0, shownAttempts),
      }
    },
  }),
  'subscriptions.test': changes(
    'send a marked test message to a webhook now, past what waits; if it is acknowledged, a disabled one is enabled',
    {
      ...named,
      hubctl: {
        about:
          '[What a test message is](webhooks.md#look-test-replay). It shows how the webhook answered; exit code 1 if it did not acknowledge.',
      },
      result: Type.Object({ name: string, delivered: boolean, delivery: attempt }),
      async run(node, args, { note }) {
        const { name, institutionId, topicId } = existing(node, args.name)
        const closed = node.deliveries.whyClosed(name)
        if (closed !== undefined) throw refusal(`nothing is sent: ${closed}`)
        await note(name, { institutionId, livestreamId: topicId })
        const delivery = await node.deliveries.test(name)
        if (delivery) return { name, delivered: delivery.reason === null, delivery }
        throw refusal('a test of this webhook is under way, or many others are: try again in a second')
      },
    },
  ),
  'subscriptions.pause': changes('send nothing to a webhook until it is resumed; its events are collected', {
    ...named,
    hubctl: { done: 'Paused {name}.' },
    result: Type.Object({ name: string, paused: boolean }),
    async run(node, args, { who, note, isOwner }) {
      const { name, institutionId, topicId } = existing(node, args.name)
      const closed = node.deliveries.whyClosed(name)
      if (closed !== undefined) throw refusal(`nothing is paused: ${closed}`)
      refusePaused(node, name, isOwner)
      await note(name, { institutionId, livestreamId: topicId })
      if (await node.deliveries.subscriptions.pause(name, who, { isOwner })) return { name, paused: true }
      // Meanwhile somebody else paused the subscription, or its owner removed it.
      refusePaused(node, name, isOwner)
      throw unknownName('subscription', name)
    },
  }),
  'subscriptions.resume': changes('end a pause, and send what was collected, in its order', {
    ...named,
    hubctl: { done: 'Resumed {name}. Messages that wait: {pending}.' },
    result: Type.Object({ name: string, resumed: boolean, state: one(...queueStates), pending: integer }),
    async run(node, args, { note, isOwner }) {
      const subscription = existing(node, args.name)
      const { name, pausedAt, pausedBy } = subscription
      if (pausedAt === undefined) throw notPaused(subscription)
      refuseOthersPause(subscription, isOwner)
      await note(name, { pausedAt, pausedBy })
      if (!(await node.deliveries.subscriptions.resume(name, { isOwner }))) {
        const changed = existing(node, name)
        refuseOthersPause(changed, isOwner)
        throw notPaused(changed)
      }
      const { state, pending } = await queueOf(node, name)
      return { name, resumed: true, state, pending }
    },
  }),
  'subscriptions.remove-secrets': loses(
    'take the secrets of a webhook: its pushes are signed by their token alone',
    {
      ...named,
      console: {
        view: 'webhooks',
        title: 'Remove secrets',
        by: 'name',
        loss: [
          'The pushes to this webhook of {institutionId} have no `webhook-signature` any more.',
          'A receiver that asks for it refuses them. The institution itself can make a new secret.',
        ],
      },
      hubctl: {
        about: 'Only users of the institution can make one: it is shown to them alone.',
        done: 'Removed the secrets of {name}.',
      },
      result: Type.Object({ name: string, removed: boolean }),
      async run(node, args, { note }) {
        const { name, institutionId, topicId, secrets } = existing(node, args.name)
        if (secrets === undefined) throw refusal('nothing is removed: it has no secret')
        await note(name, { institutionId, livestreamId: topicId })
        if (await node.deliveries.subscriptions.removeSecrets(name)) return { name, removed: true }
        throw unknownName('subscription', name)
      },
    },
  ),
  'subscriptions.remove': loses('remove a subscription with all that waits for it and its dead letters', {
    ...named,
    console: {
      view: 'webhooks',
      title: 'Remove',
      by: 'name',
      loss: [
        'The subscription of {institutionId} is lost with all that waits for it. Its webhook gets nothing more.',
        '{pending|message} wait.',
        '{deadLetters|dead letter} go with it.',
      ],
    },
    hubctl: {
      done: 'Removed {name}. Lost with it: {pending} messages that waited, {deadLetters} dead letters.',
    },
    result: Type.Object({ name: string, removed: boolean, pending: integer, deadLetters: integer }),
    async run(node, args, { note }) {
      const { name, institutionId, topicId, contact, url } = existing(node, args.name)
      const { pending, deadLetters } = await queueOf(node, name)
      // The rest of the URL may hold a secret of the receiver.
      const { host } = new URL(url)
      await note(name, { institutionId, livestreamId: topicId, host, contact, pending, deadLetters })
      const isRemoved = await node.deliveries.subscriptions.remove(institutionId, name)
      if (!isRemoved) throw unknownName('subscription', name)
      return { name, removed: true, pending, deadLetters }
    },
  }),
}

/** The ids of the livestreams that are meant by an id, an external id or a title. */
async function livestreamsMeant(node: NodeParts, name: string): Promise<string[]> {
  if (isId(name)) return [name]
  const found = await livestreamsNamed(node, name)
  if (found.length === 0) throw unknownName('livestream', name)
  return found.map(({ id }) => id)
}

/** Whether a livestream is given by its id. */
function isId(livestream: string): boolean {
  return livestream.startsWith('urn:')
}

function existing({ deliveries }: NodeParts, name: string): PushSubscription {
  const subscription = deliveries.subscriptions.find(name)
  if (!subscription) throw unknownName('subscription', name)
  return subscription
}

async function queueOf({ deliveries }: NodeParts, name: string): Promise<ShownQueue> {
  const queue = (await deliveries.list()).find((one) => one.name === name)
  if (!queue) throw unknownName('subscription', name) // its owner or an operator removed the subscription
  return queue
}

function toListed({ feed }: NodeParts, subscription: PushSubscription, queue: ShownQueue) {
  const { name, institutionId, topicId, url, contact, createdAt } = subscription
  const { state, pending, oldest, deadLetters, lastReason } = queue
  const livestream = { id: topicId, title: feed.current()?.byId.get(topicId)?.title ?? null }
  const standing = { state, pending, oldest, deadLetters, lastReason }
  return { name, institutionId, livestream, url, contact, ...standing, createdAt }
}

function refusePaused({ deliveries }: NodeParts, name: string, isOwner?: boolean): void {
  const subscription = deliveries.subscriptions.find(name)
  if (subscription?.pausedAt === undefined) return
  throw refusal(`${pauserOf(subscription, isOwner)} paused it already, at ${subscription.pausedAt}`)
}

/** Refuses to let the owner of a webhook end the pause of an operator. */
function refuseOthersPause(subscription: PushSubscription, isOwner = false): void {
  const { pausedAt, isPausedByOwner } = subscription
  if (pausedAt !== undefined && isOwner && !isPausedByOwner)
    throw refusal(`${anOperator} paused it at ${pausedAt}: only an operator resumes it`)
}

const anOperator = 'an operator of the hub'

/** Who paused a webhook. Its owner does not learn the names of operators. */
export function pauserOf(
  { pausedBy, isPausedByOwner }: Pick<PushSubscription, 'pausedBy' | 'isPausedByOwner'>,
  isOwner = false,
): string | undefined {
  return isOwner && !isPausedByOwner ? anOperator : pausedBy
}

function notPaused({ disabledAt }: PushSubscription): Error {
  const why =
    disabledAt === undefined
      ? 'it is not paused'
      : 'it is disabled because its webhook answered 410; a replay or an acknowledged test message enables it'
  return refusal(`nothing is resumed: ${why}`)
}
