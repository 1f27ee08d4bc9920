import { createBroker } from '../../broker/broker.ts'
import { openFanOut } from '../../broker/fanout/fanout.ts'
import { createInbox } from '../../broker/publish.ts'
import { limitsOf, loadConfig } from '../../config/config.ts'
import { createAttempts } from '../../delivery/attempts.ts'
import { createPlanner } from '../../delivery/planner.ts'
import { slots, workLimits } from '../../delivery/queue/limits.ts'
import { createWorkQueues } from '../../delivery/queue/work-queues.ts'
import { createLeases } from '../../delivery/runner/leases.ts'
import { createRunner } from '../../delivery/runner/runner.ts'
import { createPush } from '../../delivery/webhook/push.ts'
import { createStandings } from '../../delivery/webhook/standing.ts'
import { createPushSubscriptions } from '../../delivery/webhook/subscriptions.ts'
import type { Post } from '../../delivery/webhook/webhook.ts'
import { createEventIds } from '../../event/format.ts'
import { createLoginLimit } from '../../listener/login-limit.ts'
import { migrate } from '../../migrate/migrate.ts'
import { createCalls } from '../../store/nodes/calls.ts'
import { openStore } from '../../store/open.ts'
import { createLog } from '../../telemetry/log.ts'
import { createMetrics } from '../../telemetry/metrics.ts'
import { createFeedSource } from '../../validator/feed/feed-source.ts'
import { createPipeline } from '../../validator/pipeline.ts'
import { createRepetitions } from '../../validator/repetitions.ts'
import { createTopics } from '../../validator/topics.ts'

export type Hub = Awaited<ReturnType<typeof openHub>>

/**
 * Opens a node as `hub.ts` does, without MQTT and HTTPS listeners. The bench sets the clock; `post` replaces requests
 * to webhooks. Nothing in the node waits for real time.
 */
export async function openHub(of: { env: Record<string, string>; clock: () => number; post: Post }) {
  const { clock, post } = of
  const loaded = loadConfig(of.env, process.cwd())
  if ('problems' in loaded) throw new Error(loaded.problems.join('\n'))
  const { config } = loaded
  const log = createLog('error')
  const metrics = createMetrics()
  const onGap = (reason: Error) => {
    throw reason
  }
  const { store, nodes, join, close } = await openStore(config, 'week', log, {
    onGap,
    prepare: (of) => migrate(of, async () => []),
  })
  const feed = await createFeedSource({ source: config.feed, intervalMs: neverMs, store, log, clock })
  const calls = createCalls({ store, nodes })
  const access = {
    authenticate: () => undefined,
    isValid: () => false,
    publishes: () => false,
    mayPublish: () => ({ allowed: false }),
    maySubscribe: () => ({ allowed: false as const, reason: 'there are no clients' }),
    mayReceive: () => false,
  }
  const fanout = await openFanOut({
    store,
    isLeader: nodes.isLeader,
    access,
    limits: config,
    clock,
    log,
    metrics,
  })
  const { journal, retained, trimming } = fanout
  const repetitions = await createRepetitions({ store, clock })
  const subscriptions = await createPushSubscriptions({ store, serviceAccount: config.serviceAccount, clock })
  const limits = { ...workLimits, perQueue: config.workQueueLimit }
  const leases = await createLeases({ store, nodes, calls, log })
  const queues = await createWorkQueues({
    store,
    journal,
    nodes,
    isOwn: leases.isOwn,
    clock,
    steadyClock: clock,
    limits,
    metrics,
  })
  const push = createPush({
    subscriptions,
    post,
    clock,
    tokenFor: async () => '',
    whyClosed: () => undefined,
  })
  const standings = await createStandings({ store, clock, isKnown: () => true })
  const runner = createRunner({
    queues,
    leases,
    clock,
    log,
    metrics,
    slots,
    attempts: createAttempts(store),
    targetOf: push.targetOf,
    isStale: () => false,
    waitOf: () => 0,
    noted: standings.noted,
    onRecovered: () => undefined,
    onGone: async () => false,
    random: Math.random,
  })
  const pipeline = createPipeline({
    repetitions,
    clock,
    log,
    metrics,
    topics: await createTopics(store),
    payloadAt: async (position) => (await journal.get(position))?.payload,
    dialects: 'all',
    feed: feed.state,
    former: feed.former,
    fanout,
    work: createPlanner({ subscriptions, targets: [], queues, whyClosed: () => undefined }),
    nextEventId: createEventIds(clock),
  })
  const { maxTopicLevels } = config
  const broker = await createBroker({
    store,
    nodes,
    calls,
    access,
    fanout,
    clock,
    log,
    metrics,
    monotonic: clock,
    inbox: createInbox({ pipeline, maxTopicLevels, log, metrics }),
    limits: limitsOf(config),
    loginLimit: createLoginLimit(config.loginFailures, store),
  })
  await join()
  runner.start()

  return {
    store,
    journal,
    subscriptions,
    queues,

    /** Takes an event as if a publisher had sent it over MQTT. */
    async publish(institutionId: string, payload: Buffer): Promise<void> {
      const arrival = { at: clock(), started: performance.now(), clientId: 'bench' }
      const { outcome } = await pipeline.publish({ payload, institutionId, allowedClasses: [] }, arrival)
      if (outcome === 'failed') throw new Error('an event could not be stored')
    },

    /** Tries all deliveries that are due. */
    deliver: runner.wakeAll,

    /** Removes some expired data, as the broker does twice a minute. */
    async sweep(): Promise<void> {
      await retained.sweep()
      await trimming.sweep()
    },

    /** Keeps the queues within their limits, as the runner does once a minute. */
    tidy: (): Promise<void> => queues.tidy(() => false),

    async close(): Promise<void> {
      await runner.stop()
      feed.close()
      await broker.close()
      await close()
    },
  }
}

const neverMs = 2 ** 31 - 1
