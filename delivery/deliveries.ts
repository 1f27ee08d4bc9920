import { readFile } from 'node:fs/promises'
import type { Config } from '../config/config.ts'
import { expected } from '../config/expected.ts'
import type { Journal } from '../journal/journal.ts'
import type { Calls } from '../store/nodes/calls.ts'
import type { Nodes } from '../store/nodes/nodes.ts'
import type { Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Repetitions } from '../validator/repetitions.ts'
import type { WorkPlanner } from '../validator/storing.ts'
import { createAttempts } from './attempts.ts'
import { createEventDeliveries } from './event-deliveries.ts'
import type { CreateDriver } from './plugins/driver.ts'
import { loadDriver } from './plugins/driver.ts'
import { createPlugins } from './plugins/plugins.ts'
import type { PluginTarget } from './plugins/targets.ts'
import { createWebhookDriver } from './plugins/webhook-driver.ts'
import { createPushedWork } from './pushed-work.ts'
import { workLimits } from './queue/limits.ts'
import type { Attempt, EarlierMessage } from './queue/work-item.ts'
import { createWorkQueues } from './queue/work-queues.ts'
import { createQueueList, queueTotals } from './queue-list.ts'
import { createLeases } from './runner/leases.ts'
import { createRunner } from './runner/runner.ts'
import { watchStuckQueues } from './runner/stuck-queues.ts'
import { createSteadyClock } from './steady-clock.ts'
import { isClosed } from './target.ts'
import { createBeginnings } from './webhook/beginnings.ts'
import { createContacts, type TellContact } from './webhook/contacts.ts'
import { createPush } from './webhook/push.ts'
import type { Sockets } from './webhook/sockets.ts'
import { createStandings } from './webhook/standing.ts'
import type { PushSubscription } from './webhook/subscription.ts'
import { createPushSubscriptions } from './webhook/subscriptions.ts'
import { createWebhooks } from './webhook/webhook.ts'

export type Deliveries = Awaited<ReturnType<typeof createDeliveries>>

/** The end of pushing to webhooks (service.md §9). */
interface PushTrack {
  /** When it ended; undefined while it goes on. */
  retiredAt(): string | undefined
  /** Calls back when it ends. */
  onRetired(listener: () => void): void
}

/** For one try of a plugin target, milliseconds. */
const pluginDeadlineMs = 20_000

/**
 * Everything behind the queues (design.md §1): what an accepted event is owed to, and the way there. Loads the
 * queues; `start` begins to work them off.
 */
export async function createDeliveries(parts: {
  config: Config
  store: Store
  journal: Journal
  nodes: Nodes
  calls: Calls
  repetitions: Repetitions
  /** The token that shows a receiver who is asking, for an audience and a service account. */
  tokenFor: (audience: string, account: string) => Promise<string>
  /** What becomes of pushing to webhooks. */
  track: PushTrack
  /** Tells the contact of a subscription that it is disabled; undefined without a mail server. */
  tellContact: TellContact | undefined
  /** The release, as receivers see it. */
  version: string
  sockets: Sockets
  clock: () => number
  log: Log
  metrics: Metrics
}) {
  const { config, store, journal, nodes, calls, repetitions, tokenFor, track, tellContact } = parts
  const { version, sockets, clock, log, metrics } = parts
  const { serviceAccount } = config
  const subscriptions = await createPushSubscriptions({ store, serviceAccount, clock })
  const limits = { ...workLimits, perQueue: config.workQueueLimit }
  const leases = await createLeases({ store, nodes, calls })
  const { isOwn } = leases
  const steadyClock = createSteadyClock(clock)
  const queues = await createWorkQueues({
    ...{ store, journal, nodes, isOwn, clock, steadyClock, limits, metrics },
  })
  const attempts = createAttempts(store)
  const isKnown = (name: string) => subscriptions.find(name) !== undefined
  const standings = await createStandings({ store, clock, isKnown })

  const { pushCa } = config
  const readCa = (path: string) =>
    expected('HUB_PUSH_CA', path, 'a certificate in PEM', () => readFile(path, 'utf8'))
  const ca = pushCa === undefined ? {} : { ca: await readCa(pushCa) }
  const client = { ...ca, maxKept: sockets.kept, userAgent: `now-playing-hub/${version}` }
  const webhooks = createWebhooks({ ...client, allowPrivate: config.pushAllowPrivate })
  // These URLs come from the operator, whose services may well be in the same house.
  const targetsOfOperator = createWebhooks({ ...client, allowPrivate: true })
  const push = createPush({ subscriptions, post: webhooks.post, tokenFor, whyClosed, clock })
  const plugins = await createPlugins({
    ...{ targets: config.plugins, driverOf, log },
    deadlineMs: pluginDeadlineMs,
  })

  const runner = createRunner({
    ...{ queues, leases, attempts, clock, log, metrics },
    targetOf: (queue) => plugins.targetOf(queue) ?? push.targetOf(queue),
    noted: (queue, outcome, isAside) => (isKnown(queue) ? standings.noted(queue, outcome, isAside) : []),
    onGone,
    places: sockets.places,
    random: Math.random,
  })
  track.onRetired(runner.wakeAll)
  const stopWatching = watchStuckQueues({
    ...{ standing: runner.standing, log, metrics },
    async pickUp(queue) {
      await leases.refresh(queue)
      runner.retryNow(queue)
    },
  })
  const beginnings = createBeginnings({
    ...{ store, journal, earlierOf, nodes, calls, subscriptions, queues, isOwn, whyClosed, log },
    begun: runner.retryNow,
  })
  const contacts = tellContact && createContacts({ ...nodes, subscriptions, isOwn, send: tellContact })
  // Wherever it is worked off.
  const retryNow = (queue: string) => {
    runner.retryNow(queue)
    if (nodes.isShared) store.commit([{ tell: 'work-retry', value: queue }]).catch(() => undefined)
  }
  const enable = (name: string) =>
    subscriptions.enable(name, () => [...standings.begun(name), { tell: 'work-retry', value: name }])
  store.onOthers('work-retry', (change) => {
    if ('tell' in change) runner.retryNow(change.value.toString())
  })
  const stopping = new AbortController()
  /** The institution of each. */
  const testing = new Map<string, string>()

  const planner: WorkPlanner = {
    warnings: plugins.warnings,
    plan: (accepted, { once, isRepeatedWhole }) =>
      queues.plan({
        ...{ messageId: accepted.id, once },
        groups: [...push.groupsFor(accepted, isRepeatedWhole), ...plugins.groupsFor(accepted)],
      }),
  }

  return {
    planner,

    subscriptions: {
      ...subscriptions,
      /** Adds a webhook; one with `from` begins with what was accepted from then on. Undefined: there are too many. */
      async add(request: Parameters<typeof subscriptions.add>[0]): Promise<PushSubscription | undefined> {
        const added = await subscriptions.add(request)
        if (added) beginnings.look(added.name)
        return added
      },
      /** Removes a subscription with everything that was owed to it. */
      async remove(institutionId: string, name: string): Promise<boolean> {
        if (!subscriptions.get(institutionId, name)) return false
        const traces = async () => [...(await attempts.drop(name)), ...standings.dropped(name)]
        const removed = await subscriptions.remove(institutionId, name, await traces())
        // With what came of a delivery meanwhile. Should this fail, the queue goes at the next start.
        if (removed) await queues.drop(name, await traces())
        return removed
      },
      /** Sends nothing more to a webhook, on any node; a delivery under way may end. True when it was not paused. */
      async pause(name: string, by: string): Promise<boolean> {
        if (!(await subscriptions.pause(name, by))) return false
        // Nodes that answer have heard of it. It is stored, so that those that do not answer hear of it later.
        await calls.askOthers('queues', null).catch(() => undefined)
        return true
      },
      /** Sends what waits, in its order. True when it was paused. */
      async resume(name: string): Promise<boolean> {
        const isResumed = await subscriptions.resume(name, [{ tell: 'work-retry', value: name }])
        if (isResumed) runner.retryNow(name)
        return isResumed
      },
      /** How it goes with a subscription. */
      standing: standings.of,
    },

    /** The last tries of a queue, newest first. */
    attempts: attempts.list,

    /** Sends what was given up once more, all or one message; how many. */
    async replay(queue: string, messageId?: string): Promise<number> {
      if (whyNotSent(queue) !== undefined) return 0
      await enable(queue)
      const count = await queues.replay(queue, messageId)
      retryNow(queue)
      return count
    },

    isWebhook: isKnown,

    /**
     * Sends to a webhook once more what the journal has of its livestream, from a time on; how many. `first` is told so
     * before anything is changed.
     */
    async replaySince(
      queue: string,
      since: number,
      first: (count: number) => Promise<void> = async () => undefined,
    ): Promise<number> {
      const topicId = subscriptions.find(queue)?.topicId
      if (topicId === undefined || whyNotSent(queue) !== undefined) return 0
      const count = await queues.repeat(queue, await earlierOf(topicId, since), async (count) => {
        await first(count)
        await enable(queue)
      })
      retryNow(queue)
      return count
    },

    /**
     * Sends a test message to a webhook. One that is acknowledged enables the subscription again.
     * Undefined: a test is under way already, or too many others are, or push has retired.
     */
    async test(name: string): Promise<Attempt | undefined> {
      const subscription = subscriptions.find(name)
      if (!subscription || testing.has(name) || whyClosed() !== undefined) return undefined
      const { institutionId } = subscription
      const ofInstitution = [...testing.values()].filter(
        (institution) => institution === institutionId,
      ).length
      // As many as are free, so that the slow webhooks of one institution leave room for the others.
      if (ofInstitution >= sockets.tests - testing.size) return undefined
      testing.set(name, institutionId)
      try {
        const attempt = await push.test(subscription, stopping.signal)
        // It may have been removed meanwhile.
        if (isKnown(name)) {
          const noted = standings.tested(name, attempt.status)
          await store.commit([...(await attempts.add(name, attempt)), ...noted])
        }
        if (attempt.reason === null) {
          await enable(name)
          retryNow(name)
        }
        return attempt
      } finally {
        testing.delete(name)
      }
    },

    /** Takes an item of plugin work that was pushed to the hub; false: there is no target for it. */
    work: createPushedWork({ store, repetitions, queues, plugins }),

    /** Every queue as operators see it. */
    list: createQueueList({
      ...{ calls, queues, runner, subscriptions },
      pluginQueues: plugins.queues,
      whyClosed: whyQueueClosed,
    }),

    totals: () => queueTotals(queues, subscriptions),

    deadLetters: queues.deadLetters,

    /** What became of an accepted event at webhooks and plugin targets. */
    ofEvent: createEventDeliveries({ push, plugins, queues, attempts: attempts.list }),

    /** Why nothing is sent from a queue any more, or undefined. */
    whyClosed: whyQueueClosed,

    whyNotSent,

    async start(): Promise<void> {
      for (const name of queues.names()) {
        if (push.targetOf(name) === 'gone') await queues.drop(name, await attempts.drop(name))
      }
      await standings.tidy()
      runner.start()
      beginnings.start()
      tellLeft(true)
      nodes.onChange(() => tellLeft(false))
    },

    /** Starts nothing more; what is under way may end. */
    async stop(): Promise<void> {
      stopping.abort()
      stopWatching()
      await Promise.all([beginnings.stop(), runner.stop()])
      await plugins.close()
      webhooks.close()
      targetsOfOperator.close()
    },
  }

  /** What the journal has for the webhooks of a livestream since a time: the newest, as many as a queue holds. */
  async function earlierOf(livestreamId: string, since: number): Promise<EarlierMessage[]> {
    const wanted = { topics: push.topicsOf(livestreamId), since, count: limits.perQueue }
    return push.earlier(livestreamId, await journal.latestOf(livestreamId, wanted))
  }

  /** Why nothing is sent to webhooks any more (service.md §9). */
  function whyClosed(): string | undefined {
    const retiredAt = track.retiredAt()
    return retiredAt === undefined ? undefined : `push has retired on ${retiredAt}`
  }

  function whyQueueClosed(queue: string): string | undefined {
    const target = push.targetOf(queue)
    return isClosed(target) ? target.closed : undefined
  }

  /** Why nothing that is put into a queue now would be sent before an operator resumes it, or undefined. */
  function whyNotSent(queue: string): string | undefined {
    const { pausedAt, pausedBy } = subscriptions.find(queue) ?? {}
    const paused =
      pausedAt === undefined ? undefined : `${pausedBy} paused it at ${pausedAt}; resume it first`
    return whyQueueClosed(queue) ?? paused
  }

  /** A webhook is believed after an hour; a plugin target at once, its driver knows what it says. */
  async function onGone(queue: string): Promise<boolean> {
    if (push.targetOf(queue) === 'gone') return true // removed meanwhile, with all it holds
    if (!isKnown(queue)) {
      await queues.giveUpAll(queue, 'the endpoint answered 410')
      return true
    }
    if (!standings.isGone(queue)) return false
    await subscriptions.disable(queue, contacts && nodes.self)
    // Not by what that returned: a commit without an answer may have been applied, and is tried again.
    if (subscriptions.find(queue)?.toldBy === nodes.self) contacts?.tell(queue).catch(notTold)
    return true
  }

  function tellLeft(isStart: boolean): void {
    contacts?.takeOver(isStart).catch(notTold)
  }

  function notTold(err: unknown): void {
    log.error({ err }, 'contacts of disabled subscriptions not told')
  }

  async function driverOf({ driver }: PluginTarget): Promise<CreateDriver> {
    if (driver !== undefined) return loadDriver(driver)
    return ({ url = '' }) =>
      createWebhookDriver({
        url,
        deadlineMs: pluginDeadlineMs,
        post: targetsOfOperator.post,
        tokenFor: (audience) => tokenFor(audience, serviceAccount),
      })
  }
}
