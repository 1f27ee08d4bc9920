import { readFile } from 'node:fs/promises'
import { mask } from '../../config/mask.ts'
import type { Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import { type Feed, type Livestream, namedLike, parseFeed, titled } from './feed.ts'
import { createFormerLivestreams } from './former.ts'

export type FeedSource = Awaited<ReturnType<typeof createFeedSource>>

interface FeedStatus {
  /** The one that is configured, like all that is said of it without passwords and tokens. */
  source: string
  /** The one the feed in use came from, or null without a feed. */
  loadedFrom: string | null
  items: number
  /** When the feed in use was read, or null without one. */
  loadedAt: string | null
  /** False while there is no good feed, or the last refresh was refused. */
  ok: boolean
  checkedAt: string | null
  problem: string | null
}

/** A feed that lost more than this share of its livestreams is taken for an accident (design.md §6). */
const shrinkGuard = 0.2
/** Bounds of one https refresh: a source that hangs or never ends must not keep the next one waiting. */
const httpLimits = { timeoutMs: 30_000, maxBytes: 64 * 1024 * 1024 }

const feedPlace = 'feed/'
const lastGoodKey = `${feedPlace}last`
const refreshChannel = 'feed refresh'

interface LastGood {
  source: string
  /** Of the response it came with; null for a file. */
  etag: string | null
  loadedAt: string
  text: string
}

/**
 * Keeps the livestream feed fresh: reads it at start and every `intervalMs`, and stays on the last good
 * one, also across restarts, when the new one does not parse, has duplicates or shrinks too far.
 */
export async function createFeedSource(options: {
  source: string
  intervalMs: number
  store: Store
  log: Log
  clock: () => number
  /** Whether a source is the sample feed of this or of an earlier release. */
  isSample?: (source: string) => boolean
  /** In place of the platform's, for tests. */
  fetchImpl?: typeof fetch
  limits?: typeof httpLimits
}) {
  const { source, store, log, clock, isSample = () => false } = options
  const { fetchImpl = fetch, limits = httpLimits } = options
  const closing = new AbortController()
  const former = await createFormerLivestreams(store, feedPlace)
  let lastGood = await restore()
  let checkedAt: string | null = null
  let problem: string | null = lastGood ? null : 'not read yet'
  let lastRefresh: Promise<unknown> = Promise.resolve()
  let underWay = 0

  const first = refresh({ force: false })
  // With a good feed at hand a slow or absent source does not keep the node from starting.
  if (!(lastGood?.source === source && isRemote(source))) await first
  const timer = setInterval(() => {
    // A source slower than the interval must not pile up refreshes.
    if (underWay === 0) void refresh({ force: false })
  }, options.intervalMs)
  timer.unref()

  store.watch?.(feedPlace, (change) => {
    if ('put' in change && change.put === lastGoodKey) takeOver(change.value)
  })
  store.watch?.(refreshChannel, (change) => {
    if ('tell' in change) void refresh(JSON.parse(change.value.toString()))
  })

  return {
    /** The feed in use, or undefined while there has never been a good one. */
    current: (): Feed | undefined => lastGood?.feed,
    /** Livestreams that a feed listed once, as it listed them last. */
    former: former.livestreams,

    /** Reads the source now, as `refresh` does, and has the other nodes read it. */
    async refresh(how: { force: boolean }): Promise<RefreshResult> {
      const result = await refresh(how)
      if (store.watch) {
        await store.commit([{ tell: refreshChannel, value: JSON.stringify(how) }]).catch((err: unknown) => {
          log.warn({ err }, 'the other nodes were not told to refresh the feed')
        })
      }
      return result
    },
    status,
    /** The livestreams an id or external id of a livestream or publisher names; else those with a name that has it. */
    lookup(text: string): Livestream[] {
      const feed = lastGood?.feed
      if (!feed) return []
      const direct = feed.byId(text)
      if (direct) return [direct]
      const meant = [...feed.byExternalId(text), ...feed.byPublisher(text)]
      return meant.length > 0 ? meant : namedLike(feed.all(), text)
    },
    /** The livestreams that are called so. */
    titled: (title: string): Livestream[] => titled(lastGood?.feed.all() ?? [], title),
    /** Stops refreshing; one under way is given up. */
    close(): void {
      clearInterval(timer)
      closing.abort(new Error('the hub is stopping'))
    },
  }

  /**
   * Reads the source now, after a refresh that is under way. `force` overrides the shrink guard only.
   * Never rejects: what went wrong is the `problem` of the result.
   */
  function refresh(how: { force: boolean }): Promise<RefreshResult> {
    underWay++
    const run = lastRefresh.then(() => refreshOnce(how.force)).finally(() => underWay--)
    lastRefresh = run
    return run
  }

  async function refreshOnce(force: boolean): Promise<RefreshResult> {
    const itemsBefore = lastGood?.feed.size ?? 0
    const found = await adopt(force).catch((error: unknown) =>
      reasonOf(error).replaceAll(source, shown(source)),
    )
    // What failed because the node stops is no problem of the feed.
    if (closing.signal.aborted) return { ...status(), itemsBefore }
    checkedAt = new Date(clock()).toISOString()
    if (found !== null && found !== problem) {
      log.error(
        { source: shown(source), problem: found, kept: itemsBefore },
        itemsBefore > 0
          ? 'feed refused, the last good one stays'
          : 'feed refused, every event is blocked until there is a good one',
      )
    }
    problem = found
    if (lastGood && !isConfigured(lastGood)) {
      const { source: loadedFrom, feed } = lastGood
      log.warn(
        { source: shown(source), loadedFrom: shown(loadedFrom), items: feed.size },
        'the livestream feed in use comes from another source than HUB_FEED',
      )
    }
    return { ...status(), itemsBefore }
  }

  /** The sample feed lies elsewhere after an update. */
  function isConfigured(last: LastGood): boolean {
    return last.source === source || (isSample(last.source) && isSample(source))
  }

  /** Takes the feed over if it is good and new; the problem, or null. */
  async function adopt(force: boolean): Promise<string | null> {
    // The feed of another source is better than none, but no measure for this one.
    const known = lastGood?.source === source ? lastGood : undefined
    const read = await readSource(known?.etag)
    if (read === 'unchanged' || read.text === known?.text) return null
    const parsed = parseFeed(read.text)
    if ('problem' in parsed) return parsed.problem
    const { feed } = parsed
    if (known && !force && feed.size < known.feed.size * (1 - shrinkGuard)) {
      const numbers = `${known.feed.size} to ${feed.size} livestreams`
      return `shrinks from ${numbers}, more than 20 %; feed refresh --force takes it anyway`
    }
    const next: LastGood = { source, ...read, loadedAt: new Date(clock()).toISOString() }
    const dropped = former.change(lastGood?.feed, feed, clock())
    await store.commit([{ put: lastGoodKey, value: JSON.stringify(next) }, ...dropped.changes])
    lastGood = { ...next, feed }
    dropped.show()
    log.info({ source: shown(source), items: feed.size }, 'feed loaded')
    return null
  }

  async function readSource(etag: string | null | undefined): Promise<ReadFeed | 'unchanged'> {
    if (!isHttps(source)) return { text: await readFile(source, 'utf8'), etag: null }
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(limits.timeoutMs)])
    const response = await fetchImpl(source, {
      headers: { accept: 'application/json', ...(etag && { 'if-none-match': etag }) },
      signal,
    })
    return readResponse(response, limits.maxBytes)
  }

  async function restore(): Promise<(LastGood & { feed: Feed }) | undefined> {
    const stored = await store.get(lastGoodKey)
    const last = stored && parseStored(stored)
    // Invented livestreams must not outlive the setting that asked for them.
    return last && isSample(last.source) && !isSample(source) ? undefined : last
  }

  /** Another node has a new one. The source is the same for all; a file may be another on each, and is read here. */
  function takeOver(stored: Buffer): void {
    const next = parseStored(stored)
    if (next?.source !== source || next.text === lastGood?.text) return
    if (!isHttps(source)) return void refresh({ force: false })
    lastGood = next
    problem = null
    log.info({ source: shown(source), items: next.feed.size }, 'feed loaded by another node')
  }

  function status(): FeedStatus {
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
}

function parseStored(stored: Buffer): (LastGood & { feed: Feed }) | undefined {
  const last: LastGood = JSON.parse(stored.toString())
  const parsed = parseFeed(last.text)
  return 'feed' in parsed ? { ...last, feed: parsed.feed } : undefined
}

interface RefreshResult extends FeedStatus {
  itemsBefore: number
}

type ReadFeed = Pick<LastGood, 'text' | 'etag'>

async function readResponse(response: Response, maxBytes: number): Promise<ReadFeed | 'unchanged'> {
  const refusal = refusalOf(response)
  if (response.status === 304 || refusal !== undefined) await response.body?.cancel()
  if (refusal !== undefined) throw new Error(refusal)
  if (response.status === 304) return 'unchanged'
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > maxBytes) throw new Error(`the answer is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return { text: Buffer.concat(chunks).toString('utf8'), etag: response.headers.get('etag') }
}

function refusalOf({ ok, status, redirected, url }: Response): string | undefined {
  // The feed decides who owns what: it must not arrive where anybody could change it.
  if (redirected && !isHttps(url)) return `redirected to ${mask('feed', url)}, which is not https`
  return ok || status === 304 ? undefined : `the source answered ${status}`
}

/** A source as it may be shown: a URL may hold a token. */
function shown(source: string): string {
  return isHttps(source) ? String(mask('feed', source)) : source
}

function isHttps(source: string): boolean {
  return /^https:/i.test(source)
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  if (!(cause instanceof Error)) return error.message
  // One attempt per address ends in an AggregateError, which has a code but no message.
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.name
  return `${error.message}: ${cause.message || code}`
}

function isRemote(source: string): boolean {
  return source.startsWith('https:')
}
