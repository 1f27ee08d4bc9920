import { setImmediate as nextTurn } from 'node:timers/promises'
import { Gauge } from 'prom-client'
import type { Broker } from '../broker/broker.ts'
import type { Certificates } from '../certs/certificates.ts'
import type { Config } from '../config/config.ts'
import { version } from '../config/version.ts'
import type { QueueTotals } from '../delivery/queue-list.ts'
import { inTimeOr } from '../store/deadline.ts'
import type { Replacement } from '../store/level/repair.ts'
import type { StoreState } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { daysUntil, type Metrics } from '../telemetry/metrics.ts'
import { reasonOf } from '../telemetry/reason.ts'
import type { FeedSource } from '../validator/feed/feed-source.ts'

/** Number of livestreams whose gauge is set in one turn of the event loop: some two milliseconds. */
const setsPerTurn = 1_000

/** What `hubctl status` shows (design.md §4). Times in seconds, the budget in milliseconds. */
export function createStatus(parts: {
  /** Name of this node. */
  node: string
  config: Config
  checkStore: StoreCheck
  feed: FeedSource
  metrics: Metrics
  certificates: Certificates
  /** Path of the CA that clients need. Undefined: clients trust the certificate already. */
  caPath: string | undefined
  broker: Broker
}) {
  const { config, node, checkStore, feed, metrics, certificates, caPath, broker } = parts
  return async () => ({
    node,
    version,
    stage: config.stage,
    uptime: Math.round(metrics.uptime()),
    store: await checkStore(statusWaitMs),
    feed: feed.status(),
    connections: broker.connectionCount(),
    budget: metrics.latency.summary(),
    certificate: {
      notAfter: certificates.notAfter().toISOString(),
      expiryDays: daysUntil(certificates.notAfter()),
      ca: caPath ?? null,
    },
    memory: { rss: process.memoryUsage.rss() },
    counters: await metrics.snapshot(),
  })
}

/** What `/health` says: whether the store accepts commits or was replaced, and whether there is a feed. */
export function createHealth(parts: { checkStore: StoreCheck; state: StoreState; feed: FeedSource }) {
  const { checkStore, state, feed } = parts
  return async () => {
    const { ok } = await checkStore(healthWaitMs)
    const store = state.replaced() ? ('replaced' as const) : ok
    return { store, feed: feed.current() !== undefined }
  }
}

/** Registers the metrics that the node reads when Prometheus asks. Events do not update them. */
export function registerGauges(
  { gauges }: Pick<Metrics, 'gauges'>,
  parts: {
    feed: Pick<FeedSource, 'status' | 'reasons' | 'confirmedAt' | 'current'>
    checkStore: StoreCheck
    queues: { totals(): QueueTotals }
    broker: Pick<Broker, 'sessionCounts' | 'subscribersHere'>
    /** Whether to show a value for each livestream of the feed: there may be thousands. */
    byLivestream: boolean
    clock: () => number
  },
): void {
  const { feed, checkStore, queues, broker, byLivestream, clock } = parts
  const secondsSince = (time: number) => Math.max(0, (clock() - time) / 1000)

  gauge('hub_build_info', 'Always 1: the labels say which release this is', {
    labels: ['version', 'node_version'],
    read: (set) => set(1, { version, node_version: process.version }),
  })
  gauge('hub_feed_ok', 'Whether the last refresh of the livestream feed was good', {
    read: (set) => set(feed.status().ok ? 1 : 0),
  })
  gauge('hub_feed_age_seconds', 'Since the livestream feed was last read and found good', {
    read(set) {
      const confirmedAt = feed.confirmedAt()
      // Without a feed there is no age to show. The gauge `hub_feed_ok` reports that.
      if (confirmedAt !== undefined) set(secondsSince(confirmedAt))
    },
  })
  gauge('hub_feed_refused', 'Why the last refresh of the livestream feed was refused: 1 for that reason', {
    labels: ['reason'],
    read(set) {
      const { reason: current } = feed.status()
      for (const reason of feed.reasons) set(reason === current ? 1 : 0, { reason })
    },
  })
  gauge('hub_store_ok', 'Whether the store accepts commits', {
    read: async (set) => set((await checkStore(scrapeWaitMs)).ok ? 1 : 0),
  })
  gauge('hub_work_pending', 'Items that wait for webhooks and plugin targets', {
    read: (set) => set(queues.totals().pending),
  })
  gauge(
    'hub_work_oldest_seconds',
    'How long the oldest of them has waited, without queues that rest; 0 when nothing waits',
    {
      read(set) {
        const { oldest } = queues.totals()
        set(oldest === undefined ? 0 : secondsSince(oldest))
      },
    },
  )
  gauge(
    'hub_queues_behind',
    'Queues from which the hub sends, and whose oldest item has waited for over a minute',
    {
      read: (set) => set(queues.totals().behind),
    },
  )
  gauge('hub_work_dead_letters', 'Dead letters of webhooks and plugin targets', {
    read: (set) => set(queues.totals().deadLetters),
  })
  gauge('hub_subscriptions_disabled', 'Push subscriptions that the hub has disabled', {
    read: (set) => set(queues.totals().disabled),
  })
  gauge('hub_sessions', 'Persistent sessions, those whose client is connected and those that are away', {
    labels: ['state'],
    read(set) {
      for (const [state, count] of Object.entries(broker.sessionCounts())) set(count, { state })
    },
  })

  gauge('hub_subscribers_of_all', 'Clients connected to this node that subscribe to all livestreams', {
    read: async (set) => set((await broker.subscribersHere([])).ofAll),
  })
  if (byLivestream) {
    gauge('hub_livestream_subscribers', 'The other clients, by livestream of the feed', {
      labels: ['livestream'],
      async read(set) {
        const ids: string[] = []
        for await (const { id } of feed.current()?.all() ?? []) ids.push(id)
        const { byLivestream: counts } = await broker.subscribersHere(ids)
        for (const [index, id] of ids.entries()) {
          // In several turns of the event loop, so that no event waits for a large feed.
          if (index % setsPerTurn === setsPerTurn - 1) await nextTurn()
          set(counts[id] ?? 0, { livestream: id })
        }
      },
    })
  }

  function gauge(
    name: string,
    help: string,
    of: {
      labels?: string[]
      read(set: (value: number, labels?: Record<string, string>) => void): void | Promise<void>
    },
  ): void {
    new Gauge({
      name,
      help,
      labelNames: of.labels ?? [],
      registers: [gauges],
      async collect() {
        // If reading fails, the gauge has no value: an old value would mislead.
        this.reset()
        this.remove({})
        await of.read((value, labels = {}) => this.set(labels, value))
      },
    })
  }
}

type StoreCheck = ReturnType<typeof createStoreCheck>

/**
 * Returns a function that says within `waitMs` whether the store works. Calls within three seconds share one question
 * to the store.
 */
export function createStoreCheck(parts: { store: Store; state: StoreState; now?: () => number }) {
  // Not `Date.now()`: if the wall clock is set back, an old answer would stay in use.
  const { store, state, now = () => performance.now() } = parts
  const { driver } = store
  let probe: { at: number; problem: Promise<string | undefined> } | undefined
  return async (waitMs: number) => {
    const replaced = state.replaced()
    const problem = state.unreachable() ?? (await asked(waitMs)) ?? (replaced && replacedProblem(replaced))
    return {
      ...{ driver, ok: problem === undefined, problem: problem ?? null },
      isReplaced: replaced !== undefined,
    }
  }

  function asked(waitMs: number): Promise<string | undefined> {
    if (probe === undefined || now() - probe.at >= probeIntervalMs) probe = { at: now(), problem: ask() }
    return inTimeOr(probe.problem, waitMs, `it has not answered for ${waitMs} ms`)
  }

  function ask(): Promise<string | undefined> {
    return store
      .commit([{ put: 'health/probe', value: new Date().toISOString() }])
      .then(() => undefined, reasonOf)
  }
}

function replacedProblem({ at, movedTo }: Replacement): string {
  return `it was damaged and replaced by an empty one at ${at} (the damaged one: ${movedTo}); hubctl store accept goes on with this one`
}

const probeIntervalMs = 3_000
const healthWaitMs = 2_000
/** Shorter than the two seconds within which `hubctl` answers. */
const statusWaitMs = 1_000
/** Prometheus gives up after ten seconds. With a slow store, Prometheus must still get the other metrics. */
const scrapeWaitMs = 2_000
