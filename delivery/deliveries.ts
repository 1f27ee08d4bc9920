import type { CurrentCa } from '../config/ca-files.ts'
import type { Config } from '../config/settings.ts'
import type { History } from '../journal/history/history.ts'
import type { Journal } from '../journal/journal.ts'
import type { RetainedMessages } from '../journal/retained.ts'
import type { Calls } from '../store/nodes/calls.ts'
import type { Nodes } from '../store/nodes/nodes.ts'
import type { Change, Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Repetitions } from '../validator/repetitions.ts'
import { createAttempts } from './attempts.ts'
import { createEventDeliveries } from './event-deliveries.ts'
import { createHttpsClients } from './https-clients.ts'
import { createPlanner } from './planner.ts'
import { createPlugins } from './plugins/plugins.ts'
import { createPushedWork } from './pushed-work.ts'
import { workLimits } from './queue/limits.ts'
import { createWorkQueues } from './queue/work-queues.ts'
import { createQueueList } from './queue-list.ts'
import { createReplays } from './replays.ts'
import { createLeases } from './runner/leases.ts'
import { createRetry, recoveredChange, retryChange } from './runner/retry.ts'
import { createRunner } from './runner/runner.ts'
import { watchStuckQueues } from './runner/stuck-queues.ts'
import { createShowing } from './showing/showing.ts'
import { createSteadyClock } from './steady-clock.ts'
import { createSubscriptionQueues } from './subscription-queues.ts'
import type { TargetOf } from './target.ts'
import { createTestMessages } from './test-messages.ts'
import { createBeginnings } from './webhook/beginnings.ts'
import { createContacts, type TellContact } from './webhook/contacts.ts'
import { createEarlierEvents } from './webhook/earlier-events.ts'
import { createPush } from './webhook/push.ts'
import type { Sockets } from './webhook/sockets.ts'
import { createStandings } from './webhook/standing.ts'
import { createPushSubscriptions } from './webhook/subscriptions.ts'
import { createKnownEvents } from './worth/known-events.ts'
import { isStale, waitOf } from './worth/worth.ts'

export type Deliveries = Awaited<ReturnType<typeof createDeliveries>>

/** The legacy API track `push`. After its end, the hub sends nothing to webhooks (service.md §9). */
interface PushTrack {
  /** When the track retired, ISO 8601. Undefined: it has not retired. */
  retiredAt(): string | undefined
  /** Calls `listener` when the track retires. */
  onRetired(listener: () => void): void
}

interface DeliveriesParts {
  config: Config
  /** A CA that webhooks and plugin targets may have besides the usual ones. */
  ca?: CurrentCa | undefined
  store: Store
  journal: Journal
  retained: RetainedMessages
  history: Pick<History, 'messages' | 'positionAt'>
  nodes: Nodes
  calls: Calls
  repetitions: Repetitions
  /** Returns a token of a service account, by which the receiver at URL `audience` recognises the hub. */
  tokenFor: (audience: string, account: string) => Promise<string>
  /** Says whether the API track `push` has retired. */
  track: PushTrack
  /** Undefined: there is no mail server. */
  tellContact: TellContact | undefined
  /** Release of the hub, which receivers see in the `User-Agent` header. */
  version: string
  sockets: Sockets
  clock: () => number
  log: Log
  metrics: Metrics
}

/** Delivers accepted events to webhooks and plugin targets, from `start` on (design.md §1). Loads the queues. */
export async function createDeliveries(parts: DeliveriesParts) {
  const { config, store, journal, nodes, calls, repetitions, tokenFor, track, tellContact } = parts
  const { version, sockets, clock, log, metrics } = parts
  const subscriptions = await createPushSubscriptions({ store, clock, serviceAccount: config.serviceAccount })
  const { find } = subscriptions
  const isWebhook = (name: string) => find(name) !== undefined
  const whyClosed = () => whyRetired(track)
  const limits = { ...workLimits, perQueue: config.workQueueLimit }
  const leases = await createLeases({ store, nodes, calls, log })
  const { isOwn } = leases
  const steadyClock = createSteadyClock(clock)
  const queues = await createWorkQueues({
    store,
    journal,
    nodes,
    isOwn,
    clock,
    steadyClock,
    limits,
    metrics,
  })
  const moment = () => ({ now: clock(), steady: steadyClock(), elapsed: performance.now() })
  const knownEvents = createKnownEvents({ journal, retained: parts.retained, moment })
  for (const item of queues.everyItem()) knownEvents.noteItem(item)
  const attempts = createAttempts(store)
  const standings = await createStandings({ store, clock, isKnown: isWebhook })
  const clients = createHttpsClients({
    config,
    ca: parts.ca,
    maxKept: sockets.kept,
    version,
    tokenFor,
    driverEnded: (reason) => metrics.pluginDriverEnds.inc({ reason }),
  })
  const push = createPush({ subscriptions, post: clients.post, tokenFor, whyClosed, clock })
  const { plugins: targets } = config
  const plugins = createPlugins({ targets, driverOf: clients.driverOf, log })
  const contacts = createContacts({ ...nodes, subscriptions, isOwn, send: tellContact, log })

  const showing = createShowing({
    ...parts,
    configured: config.outputs,
    ca: parts.ca,
    leases,
    steadyClock,
  })
  const runner = createRunner({
    queues,
    leases: {
      ...leases,
      onFreed: (listener, changed) =>
        leases.onFreed((lease) => {
          if (!showing.isLane(lease)) listener(lease)
        }, changed),
    },
    attempts,
    onGone,
    // Who does not hear of it waits for the end of its pauses, 15 s at most.
    onRecovered: (of) => {
      if (nodes.isShared) void store.commit([recoveredChange(of)]).catch(() => undefined)
    },
    slots: sockets.slots,
    clock,
    log,
    metrics,
    targetOf,
    isStale: (item, target) => isStale(item, target, moment(), knownEvents),
    waitOf: (item, target) => waitOf(item, target, moment()),
    noted: (queue, outcome, isAside) => (isWebhook(queue) ? standings.noted(queue, outcome, isAside) : []),
    random: Math.random,
  })
  track.onRetired(runner.wakeAll)
  const stopWatching = watchStuckQueues({
    stuckQueues: runner.stuckQueues,
    log,
    metrics,
    pickUp: (queue) => leases.refresh(queue).then(() => runner.retryNow(queue)),
  })
  const retry = createRetry({ store, runner })
  const earlierOf = createEarlierEvents({
    journal,
    livestreams: livestreamsWithEvents,
    most: limits.perQueue,
  })
  const beginnings = createBeginnings({
    store,
    journal,
    earlierOf,
    nodes,
    calls,
    subscriptions,
    queues,
    isOwn,
    whyClosed,
    log,
    onFilled: runner.retryNow,
  })
  const tests = createTestMessages({
    store,
    find,
    push,
    attempts,
    standings,
    whyClosed,
    enable,
    retry,
    most: sockets.tests,
  })
  let stopped: Promise<void> | undefined

  return {
    planner: createPlanner({ subscriptions, targets, queues, whyClosed }),

    subscriptions: {
      ...subscriptions,
      ...createSubscriptionQueues({
        subscriptions,
        queues,
        attempts,
        standings,
        calls,
        beginnings,
        runner,
        log,
      }),
      /** Whether the deliveries to a subscription succeed, in the words that its institution gets. */
      standing: standings.of,
    },

    isWebhook,

    /** The last attempts of a queue, newest first. */
    attempts: attempts.list,

    ...createReplays({ find, enable, queues, earlierOf, push, retry }),

    /** Sends a test message to a webhook. */
    test: tests.test,

    /** Queues an item that came to `POST /pubsub`. False: there is no target for the item. */
    work: createPushedWork({ store, repetitions, queues, plugins }),

    ...createQueueList({
      calls,
      queues,
      isOwn,
      runner,
      subscriptions,
      plugins,
      push,
      delayOf,
      clock,
    }),

    deadLetters: queues.deadLetters,

    /** The deliveries of an accepted event to webhooks and plugin targets. */
    ofEvent: createEventDeliveries({ subscriptions, plugins, queues, attempts: attempts.list }),

    /** The outputs, each with its livestreams: open.md §5. */
    outputs: showing,

    whyClosed: push.whyClosed,
    whyNotSent: push.whyNotSent,

    async start(): Promise<void> {
      for (const name of queues.names()) {
        if (push.targetOf(name) === 'gone') await queues.drop(name, await attempts.drop(name))
      }
      await standings.tidy()
      runner.start()
      plugins.start((queue, isReady) => {
        leases.declare(queue, isReady)
        runner.wake(queue)
      })
      beginnings.start()
      contacts.start()
      await showing.start()
      void removeLeftLeases()
      nodes.onChange(() => void removeLeftLeases())
    },

    /** Starts no more deliveries. */
    stop: (): void => void stop(),

    /** Resolves when the deliveries under way have ended. */
    close: (): Promise<void> => stop(),
  }

  /** The livestreams that have retained events: a livestream has them from its first event on. */
  function livestreamsWithEvents(): string[] {
    const topics = parts.retained.topics('radio/#')
    return [...new Set([...topics].map((topic) => topic.split('/')[1] ?? ''))].sort()
  }

  /** A node that is gone may have worked off what was removed, or is not configured any more. */
  function removeLeftLeases(): Promise<void> {
    const isUnused = (lease: string) =>
      showing.isLane(lease)
        ? !showing.has(lease)
        : queues.lengthOf(lease).pending === 0 && typeof targetOf(lease) !== 'object'
    return leases
      .removeLeft(isUnused)
      .catch((err: unknown) => log.warn({ err }, 'leases of nodes that are gone not removed yet'))
  }

  function delayOf(queue: string): number {
    const target = targetOf(queue)
    return typeof target === 'object' && 'delayMs' in target ? (target.delayMs ?? 0) : 0
  }

  function targetOf(queue: string): ReturnType<TargetOf> {
    return plugins.targetOf(queue) ?? push.targetOf(queue)
  }

  function stop(): Promise<void> {
    stopped ??= stopAll()
    return stopped
  }

  async function stopAll(): Promise<void> {
    tests.stop()
    contacts.stop()
    stopWatching()
    await Promise.all([beginnings.stop(), runner.stop(), showing.close()])
    await plugins.close()
    clients.close()
  }

  /** Enables a webhook, and stores `alongside`. Returns whether the webhook was disabled before. */
  function enable(name: string, alongside: readonly Change[] = []): Promise<boolean> {
    return subscriptions.enable(name, () => [...alongside, ...standings.madeActive(name), retryChange(name)])
  }

  /**
   * Called when an endpoint answers that it is gone (410). Gives up all items of a plugin target. Disables a webhook
   * that has answered only 410 for an hour. False: the hour is not over, so the hub tries again.
   */
  async function onGone(queue: string): Promise<boolean> {
    if (push.targetOf(queue) === 'gone') return true // removed meanwhile, with its queue
    if (!isWebhook(queue)) {
      await queues.giveUpAll(queue, 'the endpoint answered 410')
      return true
    }
    if (!standings.isGone(queue)) return false
    await contacts.disable(queue)
    return true
  }
}

/** Why the hub sends nothing to webhooks any more (service.md §9). Undefined: it still sends. */
function whyRetired(track: PushTrack): string | undefined {
  const retiredAt = track.retiredAt()
  return retiredAt === undefined ? undefined : `push has retired on ${retiredAt}`
}
