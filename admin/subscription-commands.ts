import type { Deliveries } from '../delivery/deliveries.ts'
import type { ShownQueue } from '../delivery/queue-list.ts'
import { isLivestreamName, readSelection, select } from '../delivery/webhook/selection.ts'
import type { PushSubscription } from '../delivery/webhook/subscription.ts'
import type { CommandsOf, Result } from '../operations/operations.ts'
import { refusal, uniqueByPrefix, unknownName, unlessError } from '../operations/refusal.ts'
import type { Audit } from './audit.ts'
import type { EventCommandParts } from './event-commands.ts'
import type { QueueCommandParts } from './queue-commands.ts'

/** The parts of a node that the commands about push subscriptions use. */
export interface SubscriptionCommandParts {
  subscriptions: Pick<
    Deliveries['subscriptions'],
    'list' | 'find' | 'standing' | 'pause' | 'resume' | 'remove'
  >
  /**
   * Sends a test message. Undefined: a test of this webhook is under way, or too many other tests are. Also undefined
   * if the webhook is removed, or the hub sends nothing to webhooks any more.
   */
  testWebhook: Deliveries['test']
  feed: {
    /** The livestream feed in use. */
    current():
      | {
          byId: { get(id: string): { title: string } | undefined }
          all(): AsyncIterable<{ id: string; title: string }>
        }
      | undefined
  }
}

/** Maximum number of attempts that `subscriptions show` lists. `queues attempts` lists all. */
const shownAttempts = 10

/** The commands about push subscriptions of all institutions (design.md §4, service.md §6.2). */
export function createSubscriptionCommands(
  parts: SubscriptionCommandParts &
    QueueCommandParts & { events: Pick<EventCommandParts['events'], 'livestreams'>; audit: Audit },
): CommandsOf<'subscriptions'> {
  const { subscriptions, feed, queues, events, audit } = parts
  const test = createTest(parts)
  return {
    'subscriptions.list': async (args) => {
      const named = await livestreamsNamed(args.livestream)
      const selection = unlessError(readSelection(named ? { ...args, livestream: undefined } : args))
      const byName = new Map((await queues.list()).map((queue) => [queue.name, queue]))
      const rows = subscriptions.list().flatMap((subscription) => {
        const queue = byName.get(subscription.name)
        const isMeant = named === undefined || named.includes(subscription.topicId)
        return queue && isMeant ? [listed(subscription, queue)] : []
      })
      return select(rows, selection)
    },

    'subscriptions.show': async (args) => {
      const names = subscriptions.list().map(({ name }) => name)
      const subscription = existing(uniqueByPrefix('subscription', args.name, names))
      const { name } = subscription
      const [queue, attempts] = await Promise.all([queueOf(name), queues.attempts(name)])
      return shown(subscription, queue, attempts.slice(0, shownAttempts))
    },

    'subscriptions.test': async (args, who) => test(existing(args.name), who),

    'subscriptions.pause': async (args, who) => {
      const { name, institutionId, topicId } = existing(args.name)
      const closed = queues.whyClosed(name)
      if (closed !== undefined) throw refusal(`nothing is paused: ${closed}`)
      refusePaused(name)
      await audit.change(who, 'subscriptions.pause', async (first) => {
        await first(name, { institutionId, livestreamId: topicId })
        if (await subscriptions.pause(name, who)) return
        // Meanwhile another operator paused the subscription, or its owner removed it.
        refusePaused(name)
        throw unknownName('subscription', name)
      })
      return { name, paused: true }
    },

    'subscriptions.resume': async (args, who) => {
      const { name, pausedAt, pausedBy } = existing(args.name)
      if (pausedAt === undefined) throw notPaused(existing(name))
      await audit.change(who, 'subscriptions.resume', async (first) => {
        await first(name, { pausedAt, pausedBy })
        if (!(await subscriptions.resume(name))) throw notPaused(existing(name))
      })
      const { state, pending } = await queueOf(name)
      return { name, resumed: true, state, pending }
    },

    'subscriptions.remove': async (args, who) => {
      const { name, institutionId, topicId, contact, url } = existing(args.name)
      const { pending, deadLetters } = await queueOf(name)
      await audit.change(who, 'subscriptions.remove', async (first) => {
        // The rest of the URL may hold a secret of the receiver.
        const { host } = new URL(url)
        await first(name, { institutionId, livestreamId: topicId, host, contact, pending, deadLetters })
        if (!(await subscriptions.remove(institutionId, name))) throw unknownName('subscription', name)
      })
      return { name, removed: true, pending, deadLetters }
    },
  }

  /** The ids of the livestreams with this external id or title. Undefined: `name` is missing, or is itself an id. */
  async function livestreamsNamed(name: unknown): Promise<string[] | undefined> {
    if (typeof name !== 'string' || !isLivestreamName(name)) return undefined
    const found = await events.livestreams(name)
    if (found.length === 0) throw unknownName('livestream', name)
    return found.map(({ id }) => id)
  }

  function existing(name: string): PushSubscription {
    const subscription = subscriptions.find(name)
    if (!subscription) throw unknownName('subscription', name)
    return subscription
  }

  async function queueOf(name: string): Promise<ShownQueue> {
    const queue = (await queues.list()).find((one) => one.name === name)
    if (!queue) throw unknownName('subscription', name) // its owner or an operator removed the subscription
    return queue
  }

  function refusePaused(name: string): void {
    const { pausedAt, pausedBy } = subscriptions.find(name) ?? {}
    if (pausedAt !== undefined) throw refusal(`${pausedBy} paused it already, at ${pausedAt}`)
  }

  function listed(subscription: PushSubscription, { state, pending, oldest, deadLetters }: ShownQueue) {
    const { name, institutionId, topicId, url, contact, createdAt } = subscription
    const livestream = { id: topicId, title: feed.current()?.byId.get(topicId)?.title ?? null }
    return { name, institutionId, livestream, url, contact, state, pending, oldest, deadLetters, createdAt }
  }

  function shown(subscription: PushSubscription, queue: ShownQueue, attempts: Result<'queues.attempts'>) {
    const { from = null, createdBy, serviceAccount, ackDeadlineSeconds } = subscription
    const { pausedAt, pausedBy, disabledAt } = subscription
    const { aside, dropped, failures, nextTry, lastReason } = queue
    return {
      ...listed(subscription, queue),
      ...{ from, createdBy, serviceAccount, ackDeadlineSeconds, aside, dropped },
      since: subscriptions.standing(subscription).since,
      ...{ failures, nextTry, lastReason },
      paused: pausedAt === undefined ? null : { at: pausedAt, by: pausedBy },
      disabled: disabledAt === undefined ? null : { at: disabledAt, by: 'hub', reason: 'answered 410' },
      attempts,
    }
  }
}

/** Makes the command `subscriptions.test`, which returns the result of the delivery. */
function createTest(
  parts: Pick<SubscriptionCommandParts, 'testWebhook'> & QueueCommandParts & { audit: Audit },
) {
  const { testWebhook, queues, audit } = parts
  return async ({ name, institutionId, topicId }: PushSubscription, who: string) => {
    const closed = queues.whyClosed(name)
    if (closed !== undefined) throw refusal(`nothing is sent: ${closed}`)
    return audit.change(who, 'subscriptions.test', async (first) => {
      await first(name, { institutionId, livestreamId: topicId })
      const delivery = await testWebhook(name)
      if (delivery) return { name, delivered: delivery.reason === null, delivery }
      throw refusal('a test of this webhook is under way, or many others are: try again in a second')
    })
  }
}

function notPaused({ disabledAt }: PushSubscription): Error {
  const why =
    disabledAt === undefined
      ? 'it is not paused'
      : 'it is disabled because its webhook answered 410; a replay or an acknowledged test message enables it'
  return refusal(`nothing is resumed: ${why}`)
}
