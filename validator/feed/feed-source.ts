import { randomUUID } from 'node:crypto'
import { mask } from '../../config/mask.ts'
import type { Calls } from '../../store/nodes/calls.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import type { Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import { reasonOf } from '../../telemetry/reason.ts'
import type { Damaged, FeedComparison, GoodFeed, SpareMemory } from './examine.ts'
import {
  chosen,
  type Feed,
  type FeedInUse,
  type Livestream,
  type LivestreamIndex,
  namedLike,
  openFeed,
  titled,
} from './feed.ts'
import { type Former, openFormer } from './former.ts'
import type { Packed } from './packed.ts'
import { isHttps, readSource } from './read-source.ts'
import { type FeedProblem, type FeedReason, FeedRefused, feedReasons, refuse } from './refusals.ts'
import { type FeedCheck, openStoredFeeds, type UsedFeed } from './stored-feeds.ts'
import { inWorker } from './worker.ts'

export type FeedSource = Awaited<ReturnType<typeof createFeedSource>>

interface FeedStatus {
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
  /** Why the last refresh failed: its row in `feedRefusals`. */
  reason: FeedReason | null
  problem: string | null
  /** Livestreams of `feedCanaries` that the feed in use lacks. */
  ignoredCanaries: string[]
}

/** Bounds of one refresh, because a source may hang or never end. */
const httpLimits = { timeoutMs: 30_000, maxBytes: 64 * 1024 * 1024 }
/** Longest wait for the node that reads the feed for all, milliseconds: longer than a refresh takes. */
const askedMs = 60_000

const refreshQuestion = 'refresh-feed'

interface FeedSourceOptions {
  source: string
  intervalMs: number
  store: Store
  log: Log
  clock: () => number
  /** The nodes that share the store. Absent: there is only this one. */
  nodes?: Pick<Nodes, 'self' | 'isLiving' | 'nameOf'>
  calls?: Pick<Calls, 'ask' | 'serve'>
  /** Ids of livestreams that no feed may lose. */
  canaries?: readonly string[]
  /** Whether a source is the sample feed of this or of an earlier release. */
  isSample?: (source: string) => boolean
  /** Aborts when the node is to stop. A refresh that is under way then ends. */
  stopping?: AbortSignal | undefined
  /** Replaces the platform's `fetch`, for tests. */
  fetchImpl?: typeof fetch
  limits?: typeof httpLimits
}

/** A refresh that a person wants. */
interface WantedFeed {
  force: boolean
}

/**
 * Reads the livestream feed at start and every `intervalMs`. If a new feed is faulty, or one of the guards holds it
 * back, the last good feed stays, also across restarts.
 *
 * Of several nodes with the same source one reads the feed and decides for all: the one that did so last, as long as it
 * lives. The others take over what it stores.
 */
export async function createFeedSource(options: FeedSourceOptions) {
  const { source, store, log, clock, canaries = [], isSample = () => false } = options
  const { fetchImpl = fetch, limits = httpLimits, intervalMs, calls } = options
  const self = options.nodes?.self ?? randomUUID()
  const isLiving = (node: string) => node === self || (options.nodes?.isLiving(node) ?? false)
  /** Whether `other` is the configured source. Sample feeds are all one source: an update may move them. */
  const isConfigured = (other: string) => other === source || (isSample(other) && isSample(source))
  const closing = new AbortController()
  const closed = AbortSignal.any(options.stopping ? [closing.signal, options.stopping] : [closing.signal])

  /** Where the source is read, again and again: the garbage collector would free such memory late. */
  const memory = new Uint8Array(new SharedArrayBuffer(limits.maxBytes))
  const how = { fetchImpl, limits, memory, closing: closed }

  const feeds = await openStoredFeeds({ store, source, isSample, log })
  const state: { inUse: UsedFeed | undefined } = { inUse: feeds.inUse }
  let { lastGood, checked } = feeds
  let former = { packed: feeds.former, livestreams: openFormer(feeds.former) }
  /** Memory of replaced feeds, into which the next one is packed. */
  let spare: SpareMemory = {}
  let confirmedAt = feeds.confirmedAt
  let wasReported: string | undefined
  let connected: () => Promise<readonly string[]> = async () => []
  let lastRefresh: Promise<unknown> = Promise.resolve()
  let underWay = 0
  /** What another node has stored and this node has not taken over yet. */
  let heard: { feed?: Buffer; former?: Buffer } = {}
  let takingOver: Promise<void> = Promise.resolve()

  store.onOthers(feeds.place, (key, value) => {
    if (!value) return
    const name = feeds.nameOf(key)
    if (name === 'checked') hearChecked(JSON.parse(value.toString()))
    else if (name !== undefined) {
      heard = { ...heard, [name]: value }
      takingOver = takingOver.then(takeOver)
    }
  })
  calls?.serve(refreshQuestion, (force) => refresh({ force: force === true }).then(() => true))

  if (decides()) {
    const first = refresh({ force: false })
    // If a good feed of a remote source is stored, the node starts without waiting.
    if (!(state.inUse?.about.source === source && isHttps(source))) await first
  }
  const timer = setInterval(() => {
    // Refreshes must not pile up if the source needs longer than the interval.
    if (underWay === 0 && decides()) void refresh({ force: false })
    else if (heard.feed || heard.former) takingOver = takingOver.then(takeOver)
  }, intervalMs).unref()

  return {
    /** Holds the feed in use, for callers that look often. */
    state: state as FeedInUse,
    /** The feed in use. Undefined: the hub has not read a good feed yet. */
    current: (): Feed | undefined => state.inUse?.feed,
    /** Livestreams that dropped out of the feed, or have another external id now. */
    former: {
      byId: { get: (id) => former.livestreams.byId.get(id) },
      byExternalId: { get: (externalId) => former.livestreams.byExternalId.get(externalId) },
      likeExternalId: (externalId) => former.livestreams.likeExternalId(externalId),
    } satisfies LivestreamIndex<Former>,

    /** From now on, a feed without the institution of a connected publisher is held back. */
    guardPublishers(institutions: () => Promise<readonly string[]>): void {
      connected = institutions
    },

    /** Reads the source now, for all nodes. `force` overrides the guards that a person can override. */
    async refresh(wanted: WantedFeed): Promise<RefreshResult> {
      if (decides()) return refresh(wanted)
      const itemsBefore = state.inUse?.feed.size ?? 0
      const problem = await ask(wanted)
      return { ...status(), ...(problem !== undefined && { ok: false, problem }), itemsBefore }
    },

    /** Reads the source now, and says what would change. Changes nothing. */
    diff: (): Promise<FeedDiff> => inTurn(diffOnce),

    status,
    /** All reasons that `status` can show. */
    reasons: feedReasons,
    /** Resolves when this node uses what other nodes had stored before the call. */
    takenOver: async (): Promise<void> => takingOver,
    /** When the feed in use was last found good, milliseconds since the epoch; undefined without a feed. */
    confirmedAt: (): number | undefined => confirmedAt,
    ...createLookUp(() => state.inUse?.feed),
    /** Stops refreshing, and aborts a refresh that is under way. */
    close(): void {
      clearInterval(timer)
      closing.abort(new Error('the hub is stopping'))
    },
  }

  /** Whether this node reads the feed. A node that lives but has not checked it for long does not count. */
  function decides(): boolean {
    if (!checked || checked.by === self || !isLiving(checked.by)) return true
    return clock() - checked.at > intervalMs * 2 + askedMs
  }

  /** Asks the node that decides. Returns the problem if it does not answer. */
  async function ask({ force }: WantedFeed): Promise<string | undefined> {
    const to = checked?.by ?? ''
    try {
      if ((await calls?.ask(to, refreshQuestion, force, askedMs)) !== true)
        return `${options.nodes?.nameOf(to) ?? to}, which reads the feed for all nodes, has not answered`
    } catch (err) {
      log.warn({ err }, 'the other nodes could not be told of a refresh of the feed')
      return 'the node that reads the feed could not be asked'
    }
    await takingOver
    return undefined
  }

  /** Reads the source, after any refresh that is under way. Never rejects: `checked` has the problem. */
  function refresh({ force }: WantedFeed): Promise<RefreshResult> {
    return inTurn(() => refreshOnce(force))
  }

  function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    underWay++
    const run = lastRefresh.then(work).finally(() => underWay--)
    lastRefresh = run.catch(() => undefined)
    return run
  }

  async function refreshOnce(force: boolean): Promise<RefreshResult> {
    const before = state.inUse
    const itemsBefore = before?.feed.size ?? 0
    const wasRefused = checked?.problem
    const found = await adopt(force).catch((error: unknown) => refusalOf(error))
    // If the node is stopping, the failure says nothing about the feed.
    if (closed.aborted) return { ...status(), itemsBefore }
    const refused = found === 'taken' || found === 'unchanged' ? null : found
    if (refused && refused.problem !== wasRefused?.problem) logRefused(refused, itemsBefore)
    if (found !== 'taken') {
      checked = checkedNow(refused)
      confirmedAt = checked.confirmedAt ?? undefined
      if (!refused && wasRefused)
        log.info({ source: shown(source), items: itemsBefore }, 'the feed is good again')
      await store.commit([feeds.putChecked(checked)]).catch((err: unknown) => {
        log.warn({ err }, 'the time of the last good feed is not stored')
      })
    }
    if (state.inUse && !isConfigured(state.inUse.about.source)) logOtherSource(state.inUse)
    reportCanaries()
    return { ...status(), itemsBefore }
  }

  function checkedNow(refused: FeedProblem | null): FeedCheck {
    const isGood = refused === null
    const held = isGood ? 0 : (checked?.held ?? 0) + (refused.reason === 'institution' ? 1 : 0)
    const confirmed = isGood ? clock() : (confirmedAt ?? null)
    return { source, by: self, at: clock(), problem: refused, held, confirmedAt: confirmed }
  }

  /** Reads the source. Uses the feed from now on if the feed is good and new. */
  async function adopt(force: boolean): Promise<'taken' | 'unchanged' | FeedProblem> {
    for (;;) {
      const [before, good] = [state.inUse, lastGood]
      // If the feed of another source is in use, this one must be compared with it, even if it has not changed.
      const known = good === before ? good?.about : undefined
      const read = await readSource(source, known?.etag, how)
      // Another node may have stored a newer feed meanwhile.
      await takingOver
      if (state.inUse !== before || lastGood !== good) continue
      if (read === 'unchanged' || read.digest === known?.digest) return 'unchanged'
      const guardedBy = await guards()
      if (state.inUse !== before || lastGood !== good) continue
      const input = {
        read,
        source,
        ...inUseNow(),
        former: former.packed,
        guards: guardedBy,
        force,
        now: clock(),
      }
      const lent = lend()
      const examined = await inWorker('examine', { ...input, spare: lent }, closed)
      if ('reason' in examined) {
        spare = { ...lent, ...spare }
        return examined
      }
      if (state.inUse !== before) continue
      await take(examined.good)
      return 'taken'
    }
  }

  async function take({ about, packed, former: dropped, stored }: GoodFeed): Promise<void> {
    const next = checkedNow(null)
    await store.commit([...feeds.putFeed(stored), feeds.putChecked(next)]).catch((error: unknown) => {
      throw new FeedRefused(refuse('store', reasonOf(error)))
    })
    checked = next
    confirmedAt = next.confirmedAt ?? undefined
    replaceFormer(dropped)
    replaceFeed({ about, packed, feed: openFeed(packed) })
    log.info({ source: shown(source), items: packed.size }, 'feed loaded')
  }

  function replaceFeed(next: UsedFeed): void {
    const memory = state.inUse?.feed.replaceBy(next.feed)
    if (memory) spare.feed = memory
    lastGood = next
    state.inUse = next
  }

  function replaceFormer(packed: Packed): void {
    spare.former = former.packed.memory
    former = { packed, livestreams: openFormer(packed) }
  }

  /** The feeds in use, for a task that is queued in this turn. Only tasks behind it write to memory that is given away later. */
  function inUseNow(): { inUse: Packed | undefined; lastGood: Packed | undefined } {
    return { inUse: state.inUse?.packed, lastGood: lastGood?.packed }
  }

  /** The spare memory, for one task of the thread and no other. */
  function lend(): SpareMemory {
    const lent = spare
    spare = {}
    return lent
  }

  async function guards() {
    return { canaries, connected: await connected(), held: checked?.held ?? 0 }
  }

  async function diffOnce(): Promise<FeedDiff> {
    const about = { ...shownSources(), itemsBefore: state.inUse?.feed.size ?? 0 }
    try {
      const read = await readSource(source, undefined, how)
      if (read === 'unchanged') throw new Error('the source answered 304')
      const guardedBy = await guards()
      const input = { read, source, guards: guardedBy, ...inUseNow() }
      return { ...about, ...(await inWorker('compare', input, closed)) }
    } catch (error) {
      return { ...about, items: null, ...refusalOf(error), differences: null }
    }
  }

  /** Uses what another node has stored. Keeps it for another attempt if that fails. */
  async function takeOver(): Promise<void> {
    const taken = heard
    if (!taken.feed && !taken.former) return
    try {
      const { feed: value, former: formerValue } = taken
      const lent = lend()
      const [next, dropped] = await Promise.all([
        value && inWorker('restoreFeed', { value, spare: lent.feed }, closed).then(unlessDamaged),
        formerValue &&
          inWorker('restoreFormer', { value: formerValue, spare: lent.former }, closed).then(unlessDamaged),
      ])
      if (dropped) replaceFormer(dropped.packed)
      if (next) {
        replaceFeed({ ...next, feed: openFeed(next.packed) })
        log.info({ source: shown(source), items: next.packed.size }, 'feed loaded by another node')
      }
      if (heard.feed === taken.feed) delete heard.feed
      if (heard.former === taken.former) delete heard.former
    } catch (err) {
      if (!closed.aborted) log.error({ err }, 'the feed of another node could not be taken over yet')
    }
  }

  function hearChecked(next: FeedCheck): void {
    checked = next
    confirmedAt = next.confirmedAt ?? confirmedAt
  }

  function reportCanaries(): void {
    const ignored = ignoredCanaries()
    const report = ignored.join()
    if (ignored.length > 0 && report !== wasReported && state.inUse) {
      log.warn({ ignored }, 'feedCanaries that the feed in use lacks are ignored')
    }
    wasReported = report
  }

  function ignoredCanaries(): string[] {
    const { inUse } = state
    return inUse ? canaries.filter((id) => !inUse.feed.byId.get(id)) : []
  }

  function status(): FeedStatus {
    const { inUse } = state
    const problem = checked ? checked.problem : { reason: null, problem: 'not read yet' }
    return {
      ...shownSources(),
      items: inUse?.feed.size ?? 0,
      loadedAt: inUse?.about.loadedAt ?? null,
      ok: inUse !== undefined && !problem,
      checkedAt: checked ? new Date(checked.at).toISOString() : null,
      reason: problem?.reason ?? null,
      problem: problem?.problem ?? null,
      ignoredCanaries: ignoredCanaries(),
    }
  }

  function shownSources() {
    const { inUse } = state
    return { source: shown(source), loadedFrom: inUse ? shown(inUse.about.source) : null }
  }

  /** What went wrong, without the secrets of the source. */
  function refusalOf(error: unknown): FeedProblem {
    const clean = (text: string) => text.replaceAll(source, shown(source))
    if (error instanceof FeedRefused) return { ...error.refused, problem: clean(error.refused.problem) }
    return refuse('source', clean(reasonOf(error)))
  }

  function logRefused({ reason, problem }: FeedProblem, kept: number): void {
    log.error(
      { source: shown(source), reason, problem, kept },
      kept > 0
        ? 'feed refused, the last good one stays'
        : 'feed refused, every event is blocked until there is a good one',
    )
  }

  function logOtherSource({ about, feed }: UsedFeed): void {
    log.warn(
      { source: shown(source), loadedFrom: shown(about.source), items: feed.size },
      'the livestream feed in use comes from another source than HUB_FEED',
    )
  }
}

/** What `hubctl feed diff` shows. */
interface FeedDiff extends FeedComparison {
  source: string
  loadedFrom: string | null
  itemsBefore: number
}

interface RefreshResult extends FeedStatus {
  itemsBefore: number
}

function unlessDamaged<Found extends object>(found: Found | Damaged): Found {
  if ('damaged' in found) throw new Error(found.damaged)
  return found
}

/** Look-ups in the feed in use, for operators. */
function createLookUp(current: () => Feed | undefined) {
  return {
    /** The livestreams with this id or external id, else those of `namedLike`. Without `text`: all. */
    async lookup(text: string | undefined): Promise<readonly Livestream[]> {
      const feed = current()
      if (!feed) return []
      if (text === undefined) return chosen(feed, () => true)
      const direct = feed.byId.get(text)
      return direct ? [direct] : (feed.byExternalId.get(text) ?? namedLike(feed, text))
    },
    /** The livestreams with this title. */
    async titled(title: string): Promise<readonly Livestream[]> {
      const feed = current()
      return feed ? titled(feed, title) : []
    },
  }
}

/** A source without secrets, for logs and status: a URL may contain a token. */
function shown(source: string): string {
  return isHttps(source) ? String(mask('feed', source)) : source
}
