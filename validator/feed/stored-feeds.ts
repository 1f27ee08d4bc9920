import { createHash } from 'node:crypto'
import { storeKeys } from '../../store/keys.ts'
import { integer, moment, object, orNull, text } from '../../store/record-form.ts'
import type { Change, Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { AboutFeed, Damaged, GoodFeed } from './examine.ts'
import { type OpenedFeed, openFeed } from './feed.ts'
import { type Packed, pack } from './packed.ts'
import type { FeedProblem } from './refusals.ts'
import { inWorker } from './worker.ts'

/** A good feed that is opened. */
export interface UsedFeed {
  about: AboutFeed
  packed: Packed
  feed: OpenedFeed
}

/** How the last check of a source ended, and which node did it. */
export interface FeedCheck {
  source: string
  /** Id of the node. */
  by: string
  /** Milliseconds since the epoch, as `confirmedAt`. */
  at: number
  problem: FeedProblem | null
  /** How many refreshes in a row have held the feed back for a missing institution. */
  held: number
  /** When the feed in use was last found good; null without a feed. */
  confirmedAt: number | null
}

const place = storeKeys.feed.prefix
const checkedPrefix = `${place}checked/`
const goodPrefix = `${place}good/`
const formerKey = `${place}dropped`

/** Maximum number of sources whose last good feeds stay, the configured one included. */
const maxSources = 4

/**
 * Opens what the store keeps of feeds: of each source the last good one, and what fell out of them. The feed that was in
 * use last is in use again, until the configured source has a good one. What is damaged is ignored. Rejects if a feed
 * cannot be read for another reason: without it, the next good feed would be believed unseen, and take its place.
 */
export async function openStoredFeeds(of: {
  store: Store
  source: string
  isSample: (source: string) => boolean
  log: Log
}) {
  const { store, source, isSample, log } = of
  const keyOf = (other: string) => {
    return createHash('sha256')
      .update(isSample(other) ? 'sample' : other)
      .digest('hex')
      .slice(0, 16)
  }
  const own = keyOf(source)
  const all = new Map<string, FeedCheck>()
  for await (const [key, value] of store.range(checkedPrefix)) {
    const checked = readChecked(value)
    if (checked) all.set(key.slice(checkedPrefix.length), checked)
  }
  const putChecked = (checked: FeedCheck): Change => {
    return { put: checkedPrefix + keyOf(checked.source), value: JSON.stringify(checked) }
  }
  const putFeed = (stored: GoodFeed['stored']): Change[] => [
    { put: goodPrefix + keyOf(source), value: bufferOf(stored.feed) },
    { put: formerKey, value: bufferOf(stored.former) },
  ]
  await forget()

  const lastGood = await restored(own)
  const newest = [...all].sort(([, a], [, b]) => (b.confirmedAt ?? 0) - (a.confirmedAt ?? 0))
  // The invented livestreams of the sample feed must not stay when another feed is configured.
  const wanted = newest.filter(([, { source: other }]) => !isSample(other) || isSample(source))
  let inUse: UsedFeed | undefined
  let confirmedAt: number | undefined
  for (const [name, checked] of wanted) {
    inUse = name === own ? lastGood : await restored(name)
    confirmedAt = checked.confirmedAt ?? undefined
    if (inUse) break
  }
  return {
    place,
    inUse,
    lastGood,
    confirmedAt: inUse && confirmedAt,
    checked: all.get(own),
    former: await restoredFormer(),
    putChecked,
    putFeed,
    /** What a key of the configured source holds. */
    nameOf(key: string): 'checked' | 'feed' | 'former' | undefined {
      if (key === checkedPrefix + own) return 'checked'
      if (key === goodPrefix + own) return 'feed'
      return key === formerKey ? 'former' : undefined
    },
  }

  async function restored(name: string): Promise<UsedFeed | undefined> {
    const value = await store.get(goodPrefix + name)
    if (!value) return undefined
    const found = await named(goodPrefix + name, inWorker('restoreFeed', { value }))
    return 'damaged' in found ? ignore(found, goodPrefix + name) : { ...found, feed: openFeed(found.packed) }
  }

  async function restoredFormer(): Promise<Packed> {
    const value = await store.get(formerKey)
    const found = value && (await named(formerKey, inWorker('restoreFormer', { value })))
    if (!found) return pack([])
    return 'damaged' in found ? (ignore(found, formerKey) ?? pack([])) : found.packed
  }

  function ignore({ damaged }: Damaged, key: string): undefined {
    log.error({ key, problem: damaged }, 'a stored feed cannot be read, and is ignored')
  }

  /** Forgets the sources that were checked least lately. */
  async function forget(): Promise<void> {
    const others = [...all].filter(([name]) => name !== own).sort(([, a], [, b]) => b.at - a.at)
    const gone = others.slice(maxSources - 1).map(([name]) => name)
    if (gone.length === 0) return
    await store.commit(gone.flatMap((name) => [{ del: checkedPrefix + name }, { del: goodPrefix + name }]))
    for (const name of gone) all.delete(name)
  }
}

/** The same bytes, not copied. */
function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

/** Says of which stored value an error is. */
function named<Result>(key: string, reading: Promise<Result>): Promise<Result> {
  return reading.catch((cause: Error) => {
    throw new Error(`${key} of the store could not be read: ${cause.message}`, { cause })
  })
}

function readChecked(value: Buffer): FeedCheck | undefined {
  try {
    const checked: unknown = JSON.parse(value.toString())
    return isChecked(checked) ? checked : undefined
  } catch {
    return undefined
  }
}

const checkedForm = object({
  source: text,
  by: text,
  at: moment,
  problem: orNull(object({ reason: text, problem: text })),
  held: integer(0),
  confirmedAt: orNull(moment),
})

function isChecked(value: unknown): value is FeedCheck {
  return checkedForm(value) === undefined
}
