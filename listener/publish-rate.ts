import { createAddedCounts } from '../store/nodes/added-counts.ts'
import type { Store } from '../store/store.ts'

export type PublishRate = ReturnType<typeof createPublishRate>

/**
 * At this many buckets, those with all their tokens are dropped. This changes no limit, because a new bucket also
 * starts with all tokens.
 */
const bucketsKept = 10_000

/**
 * Limits the events per second of each publisher by a token bucket that holds twice the rate (design.md §3). `rate` 0:
 * no limit. The nodes of `store` share the limit: each tells the others on `channel` how many tokens it took.
 *
 * Over MQTT, events above the limit wait, because no event may be lost. An event takes one token when the node lets it
 * in. After the decision, `charge` takes the rest of the cost, and may take the bucket below zero. An event costs at
 * most a full bucket, so that no event waits for minutes.
 */
export function createPublishRate(rate: number, store?: Store, channel = 'mqtt-publish') {
  const buckets = new Map<string, Bucket>()
  const size = rate * 2
  const tellOthers = createAddedCounts(store, channel, (username, count) => {
    spend(username, count, performance.now())
  })

  return {
    /**
     * Whether a PUBLISH may go on now. If not, the PUBLISH waits in the queue of its credential, and `resume` is called
     * later. `resume` returns false if its connection has closed: then the token is given back.
     */
    enter(username: string, resume: () => boolean): boolean {
      if (rate === 0) return true
      const waiting = buckets.get(username)?.waiting
      if (waiting) {
        waiting.push(resume)
        return false
      }
      const wait = take(username, performance.now())
      if (wait === 0) return true
      bucketOf(username, performance.now()).waiting = [resume]
      wakeLater(username, wait)
      return false
    },

    /** Takes a token and returns 0, or returns the milliseconds until there is a token. `now`: `performance.now()`. */
    take,

    /**
     * Charges the cost of an event beyond its first token. A PUBLISH that waits behind a cheap event goes on at once.
     * Behind an expensive one it goes on in the next turn of the event loop: by then, a PUBLISH has been charged.
     */
    charge(username: string, cost: number, now: number): void {
      if (rate === 0) return
      if (cost <= 0) {
        // Not before the caller has settled this event.
        if (buckets.get(username)?.next) process.nextTick(goOn, username)
        return
      }
      const tokens = Math.min(cost, size - 1)
      spend(username, tokens, now)
      tellOthers(username, tokens)
    },
  }

  function take(username: string, now: number): number {
    if (rate === 0) return 0
    const { tokens } = bucketOf(username, now)
    if (tokens < 1) return Math.ceil(((1 - tokens) / rate) * 1000)
    spend(username, 1, now)
    tellOthers(username, 1)
    return 0
  }

  function spend(username: string, count: number, now: number): void {
    bucketOf(username, now).tokens -= count
  }

  function bucketOf(username: string, now: number): Bucket {
    const known = buckets.get(username)
    if (known) {
      known.tokens = tokensAt(known, now, rate)
      known.at = now
      return known
    }
    if (buckets.size >= bucketsKept) dropFull(now)
    const bucket: Bucket = { tokens: size, at: now, waiting: undefined, next: undefined }
    buckets.set(username, bucket)
    return bucket
  }

  /** Starts one timer for all waiting PUBLISHes of a credential. With a timer each, all would wake up for one token. */
  function wakeLater(username: string, ms: number): void {
    setTimeout(() => wake(username), ms).unref()
  }

  function wake(username: string): void {
    const bucket = buckets.get(username)
    while (bucket?.waiting) {
      const [resume] = bucket.waiting
      if (!resume) {
        bucket.waiting = undefined
        return
      }
      const wait = take(username, performance.now())
      if (wait > 0) {
        wakeLater(username, wait)
        return
      }
      bucket.waiting.shift()
      // Before `resume`, which mostly decides about the PUBLISH, and charges it.
      bucket.next = setImmediate(goOn, username)
      if (resume()) return
      clearImmediate(bucket.next)
      bucket.next = undefined
      giveBack(username)
    }
  }

  /** Wakes the next PUBLISH, unless `goOn` was called since the last one was let in. */
  function goOn(username: string): void {
    const bucket = buckets.get(username)
    if (!bucket?.next) return
    clearImmediate(bucket.next)
    bucket.next = undefined
    wake(username)
  }

  function giveBack(username: string): void {
    spend(username, -1, performance.now())
    tellOthers(username, -1)
  }

  function dropFull(now: number): void {
    for (const [username, bucket] of buckets) {
      if (!bucket.waiting && tokensAt(bucket, now, rate) >= size) buckets.delete(username)
    }
  }
}

/** The tokens that a bucket has now: it fills with time, up to twice the rate. */
function tokensAt({ tokens, at }: Bucket, now: number, rate: number): number {
  return Math.min(tokens + ((now - at) / 1000) * rate, rate * 2)
}

interface Bucket {
  tokens: number
  /** When `tokens` was last brought up to date, on the clock of `performance.now()`. */
  at: number
  /** PUBLISHes that wait for a token. Undefined: none waits, and no timer runs. */
  waiting: (() => boolean)[] | undefined
  /** Wakes the next PUBLISH if the one let in last is not cheap, or is never decided. */
  next: NodeJS.Immediate | undefined
}

/** How many bytes of an event cost one token of the publish rate. */
const bytesPerToken = 64 * 1024

/**
 * The cost of an event in tokens of the publish rate: payload in units of 64 KiB, times livestreams, at least 1. The
 * node stores and sends an event for each livestream. An event that is refused before its livestreams are counted costs
 * only its reading.
 */
export function costOf(payloadBytes: number, livestreams: number): number {
  return Math.max(1, (payloadBytes * Math.max(1, livestreams)) / bytesPerToken)
}
