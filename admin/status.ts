import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Broker } from '../broker/broker.ts'
import type { Certificates } from '../certs/certificates.ts'
import type { Config } from '../config/settings.ts'
import { version } from '../config/version.ts'
import type { QueueTotals } from '../delivery/queue-list.ts'
import { inTimeOr } from '../store/deadline.ts'
import { storeKeys } from '../store/keys.ts'
import type { Replacement } from '../store/level/repair.ts'
import type { StoreState } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { type Figures, sumOf } from '../telemetry/figures.ts'
import { daysUntil, type Metrics, type Readings } from '../telemetry/metrics.ts'
import { reasonOf } from '../telemetry/reason.ts'
import type { FeedSource } from '../validator/feed/feed-source.ts'
import type { Watch } from '../watch/watch.ts'

/** Number of livestreams whose gauge is set in one turn of the event loop: some two milliseconds. */
const setsPerTurn = 1_000

/** What `hubctl status` shows (design.md §4). Times in seconds, the budget in milliseconds. */
export function createStatus(parts: {
  /** What operators call the hub, which may have several processes, and how long it has run, seconds. */
  hub: { node: string; uptime(): number }
  config: Config
  checkStore: StoreCheck
  feed: FeedSource
  metrics: Metrics
  certificates: Certificates
  /** Path of the CA that clients need. Undefined: clients trust the certificate already. */
  caPath: string | undefined
  /** The figures of each process. */
  figures: () => Promise<Figures[]>
}) {
  const { config, hub, checkStore, feed, metrics, certificates, caPath, figures } = parts
  return async () => {
    const each = await figures()
    return {
      node: hub.node,
      version,
      stage: config.stage,
      uptime: Math.round(hub.uptime()),
      store: await checkStore(statusWaitMs),
      feed: feed.status(),
      ...sumOf(each),
      ...(config.workers > 1 && { workers: each.map(workerOf) }),
      certificate: {
        notAfter: certificates.notAfter().toISOString(),
        expiryDays: daysUntil(certificates.notAfter()),
        ca: caPath ?? null,
      },
      counters: await metrics.snapshot(),
    }
  }
}

/** A worker (`HUB_WORKERS`) by the name that it has in lists of clients and sessions. */
function workerOf({ node, uptime, connections, rss }: Figures) {
  return { node, uptime: Math.round(uptime), connections, rss }
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

/**
 * What `/readyz` says: why clients should go to another node. Undefined: they may come. A Redis that no node reaches is no
 * reason, because no other node is better.
 */
export function createReadiness(parts: {
  checkStore: StoreCheck
  isShared: boolean
  isCutOff: () => boolean
}) {
  const { checkStore, isShared, isCutOff } = parts
  return async (): Promise<'cut off' | 'store' | undefined> => {
    if (isShared) return isCutOff() ? 'cut off' : undefined
    return (await checkStore(healthWaitMs)).ok ? undefined : 'store'
  }
}

/** How the node reads its metrics when Prometheus asks: all but the two that `hub.ts` and the metrics themselves know. */
export function createReadings(parts: {
  feed: Pick<FeedSource, 'status' | 'reasons' | 'confirmedAt' | 'current'>
  checkStore: StoreCheck
  state: Pick<StoreState, 'unsafeSettings'>
  queues: { totals(): QueueTotals; outputs: { failing(): number } }
  broker: Pick<Broker, 'sessionCounts' | 'subscribersHere'>
  watch: Pick<Watch, 'loopCount' | 'silentCount'>
  clock: () => number
}): Required<Omit<Readings, 'startTime' | 'certificateExpiryDays'>> {
  const { feed, checkStore, state, queues, broker, watch, clock } = parts
  const secondsSince = (time: number) => Math.max(0, (clock() - time) / 1000)

  return {
    buildInfo: (set) => set(1, { version, node_version: process.version }),
    feedOk: (set) => set(feed.status().ok ? 1 : 0),
    feedAge(set) {
      const confirmedAt = feed.confirmedAt()
      // Without a feed there is no age to show. The gauge `hub_feed_ok` reports that.
      if (confirmedAt !== undefined) set(secondsSince(confirmedAt))
    },
    feedRefused(set) {
      const { reason: current } = feed.status()
      for (const reason of feed.reasons) set(reason === current ? 1 : 0, { reason })
    },
    storeUnsafe: (set) => set(state.unsafeSettings()),
    storeOk: async (set) => set((await checkStore(scrapeWaitMs)).ok ? 1 : 0),
    workPending: (set) => set(queues.totals().pending),
    workOldest(set) {
      const { oldest } = queues.totals()
      set(oldest === undefined ? 0 : secondsSince(oldest))
    },
    queuesBehind: (set) => set(queues.totals().behind),
    outputsFailing: (set) => set(queues.outputs.failing()),
    deadLetters: (set) => set(queues.totals().deadLetters),
    subscriptionsDisabled: (set) => set(queues.totals().disabled),
    sessions(set) {
      const { connected, away } = broker.sessionCounts()
      set(connected, { state: 'connected' })
      set(away, { state: 'away' })
    },
    subscribersOfAll: async (set) => set((await broker.subscribersHere([])).ofAll),
    loopingLivestreams: (set) => set(watch.loopCount()),
    silentLivestreams: (set) => set(watch.silentCount()),
    async livestreamSubscribers(set) {
      const ids: string[] = []
      for await (const { id } of feed.current()?.all() ?? []) ids.push(id)
      const { byLivestream: counts } = await broker.subscribersHere(ids)
      for (const [index, id] of ids.entries()) {
        // In several turns of the event loop, so that no event waits for a large feed.
        if (index % setsPerTurn === setsPerTurn - 1) await nextTurn()
        set(counts[id] ?? 0, { livestream: id })
      }
    },
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
      driver,
      ok: problem === undefined,
      problem: problem ?? null,
      isReplaced: replaced !== undefined,
    }
  }

  function asked(waitMs: number): Promise<string | undefined> {
    if (probe === undefined || now() - probe.at >= probeIntervalMs) probe = { at: now(), problem: ask() }
    return inTimeOr(probe.problem, waitMs, `it has not answered for ${waitMs} ms`)
  }

  function ask(): Promise<string | undefined> {
    return store
      .commit([{ put: `${storeKeys.health.prefix}probe`, value: new Date().toISOString() }])
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
