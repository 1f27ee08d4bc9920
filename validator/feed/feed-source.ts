import { mask } from '../../config/mask.ts'
import type { Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import { type Feed, type FeedInUse, type Livestream, namedLike, parseFeed, titled } from './feed.ts'
import { createFormerLivestreams } from './former.ts'
import { isHttps, type ReadFeed, readSource } from './read-source.ts'

export type FeedSource = Awaited<ReturnType<typeof createFeedSource>>

export interface FeedStatus {
  /** The configured source, without passwords and tokens. */
  source: string
  /** The source of the feed in use, or null without a feed. */
  loadedFrom: string | null
  items: number
  /** When the feed in use was read, or null without one. */
  loadedAt: string | null
  /** False if there is no good feed, or if the last refresh failed. */
  ok: boolean
  checkedAt: string | null
  problem: string | null
}

/** A feed that lost more than this share of the livestreams is refused as an accident (design.md §6). */
const shrinkGuard = 0.2
/** Bounds of one refresh over https, because a source may hang or never end. */
const httpLimits = { timeoutMs: 30_000, maxBytes: 64 * 1024 * 1024 }

const feedPlace = 'feed/'
const lastGoodKey = `${feedPlace}last`
const confirmedKey = `${feedPlace}confirmed`
const refreshChannel = 'feed refresh'

interface LastGood extends ReadFeed {
  source: string
  loadedAt: string
}

/** When an unchanged feed of a source was last found good, milliseconds since the epoch. */
interface Confirmed {
  source: string
  at: number
}

/** The feed in use. */
type UsedFeed = LastGood & { feed: Feed }

interface FeedSourceOptions {
  source: string
  intervalMs: number
  store: Store
  log: Log
  clock: () => number
  /** Whether a source is the sample feed of this or of an earlier release. */
  isSample?: (source: string) => boolean
  /** Aborts when the node is to stop. A refresh that is under way then ends. */
  stopping?: AbortSignal | undefined
  /** Replaces the platform's `fetch`, for tests. */
  fetchImpl?: typeof fetch
  limits?: typeof httpLimits
}

/**
 * Reads the livestream feed at start and every `intervalMs`. If a new feed is faulty or shrinks too far, the last good
 * feed stays, also across restarts.
 */
export async function createFeedSource(options: FeedSourceOptions) {
  const { source, store, log, clock, isSample = () => false } = options
  const { fetchImpl = fetch, limits = httpLimits } = options
  /** Whether `other` is the configured source. Sample feeds are all one source: an update may move them. */
  const isConfigured = (other: string) => other === source || (isSample(other) && isSample(source))
  const closing = new AbortController()
  const closed = AbortSignal.any(options.stopping ? [closing.signal, options.stopping] : [closing.signal])
  const former = await createFormerLivestreams(store, feedPlace)
  const stored = await restore(store, (last) => !isSample(last) || isSample(source))
  const state: { inUse: UsedFeed | undefined } = { inUse: stored }
  let checkedAt: string | null = null
  let problem: string | null = state.inUse ? null : 'not read yet'
  let lastRefresh: Promise<unknown> = Promise.resolve()
  let underWay = 0
  let confirmedAt = state.inUse && (await lastConfirmed(store, state.inUse))

  const first = refresh({ force: false })
  // If a good feed of a remote source is stored, the node starts without waiting.
  if (!(state.inUse?.source === source && isRemote(source))) await first
  const timer = setInterval(() => {
    // Refreshes must not pile up if the source needs longer than the interval.
    if (underWay === 0) void refresh({ force: false })
  }, options.intervalMs).unref()

  store.onOthers(feedPlace, (change) => {
    if ('put' in change && change.put === lastGoodKey) takeOver(change.value)
  })
  store.onOthers(refreshChannel, (change) => {
    if ('tell' in change) void refresh(JSON.parse(change.value.toString()))
  })

  return {
    /** Holds the feed in use, for callers that look often. */
    state: state as FeedInUse,
    /** The feed in use. Undefined: the hub has not read a good feed yet. */
    current: (): Feed | undefined => state.inUse?.feed,
    /** Livestreams that dropped out of the feed, or have another external id now. */
    former: former.livestreams,

    /** Reads the source now, on all nodes. `force` overrides the shrink guard. */
    async refresh(how: { force: boolean }): Promise<RefreshResult> {
      const result = await refresh(how)
      await tellOthers(store, how, log)
      return result
    },
    status,
    /** When the feed in use was last found good, milliseconds since the epoch; undefined without a feed. */
    confirmedAt: (): number | undefined => confirmedAt,
    ...createLookUp(() => state.inUse?.feed),
    /** Stops refreshing, and aborts a refresh that is under way. */
    close(): void {
      clearInterval(timer)
      closing.abort(new Error('the hub is stopping'))
    },
  }

  /**
   * Reads the source, after any refresh that is under way. `force` overrides only the shrink guard. Never rejects:
   * `problem` describes a failure.
   */
  function refresh(how: { force: boolean }): Promise<RefreshResult> {
    underWay++
    const run = lastRefresh.then(() => refreshOnce(how.force)).finally(() => underWay--)
    lastRefresh = run
    return run
  }

  async function refreshOnce(force: boolean): Promise<RefreshResult> {
    const before = state.inUse
    const itemsBefore = before?.feed.size ?? 0
    const found = await adopt(force).catch((error: unknown) =>
      reasonOf(error).replaceAll(source, shown(source)),
    )
    // If the node is stopping, the failure says nothing about the feed.
    if (closed.aborted) return { ...status(), itemsBefore }
    checkedAt = new Date(clock()).toISOString()
    if (found !== null && found !== problem) logRefused(log, source, found, itemsBefore)
    const wasRefused = problem !== null
    problem = found
    if (found === null) {
      confirmedAt = clock()
      if (state.inUse === before) {
        if (wasRefused) log.info({ source: shown(source), items: itemsBefore }, 'the feed is good again')
        await storeConfirmed(store, { source, at: confirmedAt }, log)
      }
    }
    if (state.inUse && !isConfigured(state.inUse.source)) logOtherSource(log, source, state.inUse)
    return { ...status(), itemsBefore }
  }

  /** Reads the source. Uses the feed from now on if the feed is good and new. Returns the problem, or null. */
  async function adopt(force: boolean): Promise<string | null> {
    const how = { force, fetchImpl, limits, closing: closed }
    const found = await readNewest(source, () => state.inUse, how)
    if ('problem' in found) return found.problem
    const { read, feed } = found
    const next: LastGood = { source, ...read, loadedAt: new Date(clock()).toISOString() }
    const dropped = former.change(state.inUse?.feed, feed, clock())
    await store.commit([{ put: lastGoodKey, value: JSON.stringify(next) }, ...dropped.changes])
    state.inUse = { ...next, feed }
    dropped.show()
    log.info({ source: shown(source), items: feed.size }, 'feed loaded')
    return null
  }

  /** Uses a feed that another node has stored. For a file, reads this node's copy instead: the copies may differ. */
  function takeOver(stored: Buffer): void {
    const next = parseStored(stored)
    if (next?.source !== source || next.text === state.inUse?.text) return
    if (!isHttps(source)) return void refresh({ force: false })
    state.inUse = next
    problem = null
    confirmedAt = clock()
    log.info({ source: shown(source), items: next.feed.size }, 'feed loaded by another node')
  }

  function status(): FeedStatus {
    return statusOf(source, state.inUse, checkedAt, problem)
  }
}

/** Stores the time at which an unchanged feed was good. Otherwise the feed would look old after a restart. */
async function storeConfirmed(store: Store, confirmed: Confirmed, log: Log): Promise<void> {
  await store.commit([{ put: confirmedKey, value: JSON.stringify(confirmed) }]).catch((err: unknown) => {
    log.warn({ err }, 'the time of the last good feed is not stored')
  })
}

/** When a stored feed was last found good, milliseconds since the epoch. */
async function lastConfirmed(store: Store, { source, loadedAt }: LastGood): Promise<number> {
  const stored = await store.get(confirmedKey)
  const confirmed: Confirmed | undefined = stored && JSON.parse(stored.toString())
  return Math.max(Date.parse(loadedAt), confirmed?.source === source ? confirmed.at : 0)
}

async function tellOthers(store: Store, how: { force: boolean }, log: Log): Promise<void> {
  await store.commit([{ tell: refreshChannel, value: JSON.stringify(how) }]).catch((err: unknown) => {
    log.warn({ err }, 'the other nodes were not told to refresh the feed')
  })
}

function statusOf(
  source: string,
  lastGood: UsedFeed | undefined,
  checkedAt: string | null,
  problem: string | null,
): FeedStatus {
  return {
    source: shown(source),
    loadedFrom: lastGood ? shown(lastGood.source) : null,
    items: lastGood?.feed.size ?? 0,
    loadedAt: lastGood?.loadedAt ?? null,
    ok: lastGood !== undefined && problem === null,
    checkedAt,
    problem,
  }
}

function logRefused(log: Log, source: string, problem: string, kept: number): void {
  log.error(
    { source: shown(source), problem, kept },
    kept > 0
      ? 'feed refused, the last good one stays'
      : 'feed refused, every event is blocked until there is a good one',
  )
}

function logOtherSource(log: Log, source: string, { source: loadedFrom, feed }: UsedFeed): void {
  log.warn(
    { source: shown(source), loadedFrom: shown(loadedFrom), items: feed.size },
    'the livestream feed in use comes from another source than HUB_FEED',
  )
}

/** Like `readGood`. Reads again if another node has stored a feed meanwhile, which may be newer. */
async function readNewest(
  source: string,
  inUse: () => UsedFeed | undefined,
  how: Parameters<typeof readGood>[2],
): ReturnType<typeof readGood> {
  for (;;) {
    const before = inUse()
    // A feed of another source is not compared with the feed of this source.
    const known = before?.source === source ? before : undefined
    const found = await readGood(source, known, how)
    if (inUse() === before) return found
  }
}

/** Returns the feed of the source if it is good and new, else the problem. Null: the feed has not changed. */
async function readGood(
  source: string,
  known: UsedFeed | undefined,
  { force, ...how }: { force: boolean } & Parameters<typeof readSource>[2],
): Promise<{ read: ReadFeed; feed: Feed } | { problem: string | null }> {
  const read = await readSource(source, known?.etag, how)
  if (read === 'unchanged' || read.text === known?.text) return { problem: null }
  const parsed = parseFeed(read.text)
  if ('problem' in parsed) return parsed
  const { feed } = parsed
  if (known && !force && feed.size < known.feed.size * (1 - shrinkGuard)) {
    const numbers = `${known.feed.size} to ${feed.size} livestreams`
    return { problem: `shrinks from ${numbers}, more than 20 %; feed refresh --force takes it anyway` }
  }
  return { read, feed }
}

async function restore(store: Store, isWanted: (source: string) => boolean): Promise<UsedFeed | undefined> {
  const stored = await store.get(lastGoodKey)
  const last = stored && parseStored(stored)
  // The invented livestreams of the sample feed must not stay when another feed is configured.
  return last && isWanted(last.source) ? last : undefined
}

/** Look-ups in the feed in use, for operators. */
function createLookUp(current: () => Feed | undefined) {
  return {
    /** The livestreams with this id, external id or publisher id, else those of `namedLike`. Without `text`: all. */
    lookup(text: string | undefined): Livestream[] {
      const feed = current()
      if (!feed) return []
      if (text === undefined) return [...feed.all()]
      const direct = feed.byId.get(text)
      if (direct) return [direct]
      const meant = [...(feed.byExternalId.get(text) ?? []), ...feed.byPublisher(text)]
      return meant.length > 0 ? meant : namedLike(feed.all(), text)
    },
    /** The livestreams with this title. */
    titled: (title: string): Livestream[] => titled(current()?.all() ?? [], title),
  }
}

function parseStored(stored: Buffer): UsedFeed | undefined {
  const last: LastGood = JSON.parse(stored.toString())
  const parsed = parseFeed(last.text)
  return 'feed' in parsed ? { ...last, feed: parsed.feed } : undefined
}

interface RefreshResult extends FeedStatus {
  itemsBefore: number
}

/** A source without secrets, for logs and status: a URL may contain a token. */
function shown(source: string): string {
  return isHttps(source) ? String(mask('feed', source)) : source
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  if (!(cause instanceof Error)) return error.message
  // If no address of a host can be reached, the cause is an AggregateError without a message.
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.name
  return `${error.message}: ${cause.message || code}`
}

function isRemote(source: string): boolean {
  return source.startsWith('https:')
}
