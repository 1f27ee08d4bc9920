import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Broker } from './broker/broker.ts'
import type { Certificates } from './certs/certificates.ts'
import type { Config } from './config/config.ts'
import type { Store } from './store/store.ts'
import { daysUntil, type Metrics } from './telemetry/metrics.ts'
import type { FeedSource } from './validator/feed-source.ts'

/** What operators call this node. */
export const nodeName = `${hostname()}:${process.pid}`

/** What `hubctl status` shows (design.md §4). Times in seconds, the budget in milliseconds. */
export function createStatus(parts: {
  config: Config
  store: Store
  feed: FeedSource
  metrics: Metrics
  certificates: Certificates
  broker: Broker
}) {
  const { config, store, feed, metrics, certificates, broker } = parts
  return async () => ({
    node: nodeName,
    version,
    stage: config.stage,
    uptime: Math.round(process.uptime()),
    store: store.driver,
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

/**
 * Whether the node can do its work: the store takes what it is given, and there is a feed. The store is
 * asked at most every few seconds, however many load balancers ask.
 */
export function createHealth(parts: { store: Store; feed: FeedSource; clock: () => number }) {
  const { store, feed, clock } = parts
  let probe: { at: number; isWell: Promise<boolean> } | undefined
  return async () => {
    if (probe === undefined || clock() - probe.at >= healthIntervalMs) probe = { at: clock(), isWell: ask() }
    return { store: await probe.isWell, feed: feed.current() !== undefined }
  }

  async function ask(): Promise<boolean> {
    const written = store.commit([{ put: 'health/probe', value: String(clock()) }]).then(
      () => true,
      () => false,
    )
    const late = new Promise<boolean>((resolve) => setTimeout(resolve, healthTimeoutMs, false).unref())
    return Promise.race([written, late])
  }
}

const healthIntervalMs = 3_000
const healthTimeoutMs = 2_000

/** The release, from the package beside the code or, in `dist/`, above it. */
export const version = readVersion()

function readVersion(): string {
  for (const path of ['./package.json', '../package.json']) {
    try {
      return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')).version
    } catch {
      // not here: this is the compiled tree
    }
  }
  return 'unknown'
}
