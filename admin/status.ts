import type { Broker } from '../broker/broker.ts'
import type { Certificates } from '../certs/certificates.ts'
import type { Config } from '../config/config.ts'
import { version } from '../config/version.ts'
import type { Replacement } from '../store/repair.ts'
import type { StoreState } from '../store/state.ts'
import type { Store } from '../store/store.ts'
import { daysUntil, type Metrics } from '../telemetry/metrics.ts'
import type { FeedSource } from '../validator/feed/feed-source.ts'

/** What `hubctl status` shows (design.md §4). Times in seconds, the budget in milliseconds. */
export function createStatus(parts: {
  /** What operators call this node. */
  node: string
  config: Config
  checkStore: StoreCheck
  feed: FeedSource
  metrics: Metrics
  certificates: Certificates
  broker: Broker
}) {
  const { config, node, checkStore, feed, metrics, certificates, broker } = parts
  return async () => ({
    node,
    version,
    stage: config.stage,
    uptime: Math.round(process.uptime()),
    store: await checkStore(statusWaitMs),
    feed: feed.status(),
    connections: broker.connectionCount(),
    budget: metrics.budget.summary(),
    certificate: {
      notAfter: certificates.notAfter().toISOString(),
      expiryDays: Math.floor(daysUntil(certificates.notAfter())),
    },
    memory: { rss: process.memoryUsage().rss },
    counters: await metrics.snapshot(),
  })
}

/** Whether the node can do its work: the store takes what it is given and is the one it was, and there is a feed. */
export function createHealth(parts: { checkStore: StoreCheck; state: StoreState; feed: FeedSource }) {
  const { checkStore, state, feed } = parts
  return async () => {
    const { ok } = await checkStore(healthWaitMs)
    const store = state.replaced() ? ('replaced' as const) : ok
    return { store, feed: feed.current() !== undefined }
  }
}

type StoreCheck = ReturnType<typeof createStoreCheck>

/**
 * What is wrong with the store, found out within the time given. It is asked at most every few seconds, however
 * many load balancers ask.
 */
export function createStoreCheck(parts: { store: Store; state: StoreState; now?: () => number }) {
  // Monotonic: a wall clock that is set back would keep an old answer alive.
  const { store, state, now = () => performance.now() } = parts
  const { driver } = store
  let probe: { at: number; problem: Promise<string | undefined> } | undefined
  return async (waitMs: number) => {
    const replaced = state.replaced()
    const problem = state.unreachable() ?? (await asked(waitMs)) ?? (replaced && replacedProblem(replaced))
    return { driver, ok: problem === undefined, problem: problem ?? null }
  }

  function asked(waitMs: number): Promise<string | undefined> {
    if (probe === undefined || now() - probe.at >= probeIntervalMs) probe = { at: now(), problem: ask() }
    const late = new Promise<string>((resolve) => {
      setTimeout(resolve, waitMs, `it has not answered for ${waitMs} ms`).unref()
    })
    return Promise.race([probe.problem, late])
  }

  function ask(): Promise<string | undefined> {
    return store.commit([{ put: 'health/probe', value: new Date().toISOString() }]).then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    )
  }
}

function replacedProblem({ at, movedTo }: Replacement): string {
  return `it was damaged and replaced by an empty one at ${at} (the damaged one: ${movedTo}); hubctl store accept goes on with this one`
}

const probeIntervalMs = 3_000
const healthWaitMs = 2_000
/** `hubctl` answers within two seconds. */
const statusWaitMs = 1_000
