import type { Store } from '../../store/store.ts'
import { type Entry, journalKey, padded, readEntry } from '../entry.ts'
import type { Journal } from '../journal.ts'
import { clearedKey, clockBehindKey } from '../retained.ts'
import { farFutureMs } from '../retained-values.ts'
import { indexesOf, newestFirst } from './newest.ts'

/** Times of two messages prove which was first only if they are this far apart: clocks differ, milliseconds. */
const toleranceMs = 60_000
/** A message keeps older ones out if its event time is at most this far ahead of the clock, milliseconds. */
const defendedMs = farFutureMs - 2 * toleranceMs
/** For one message, this many earlier messages are looked at. */
const maxLookedAt = 100
/** For a whole event, this many messages are looked at, but at least `minLookedAt` for each of its messages. */
const maxLookedAtInAll = 1_000
const minLookedAt = 5

/**
 * Finds why a message was never retained: a message with a newer event time came before it. It answers only where
 * stored data prove this, so all nodes say the same. The proof is that, since the newer message,
 * - the whole journal is kept,
 * - no event time was so far ahead that an older one may have replaced it,
 * - the topic was not cleared, and no clock was set back.
 */
export function createLate({ store, journal }: { store: Store; journal: Pick<Journal, 'floor' | 'get'> }) {
  /** For each message of an event, finds the newer message. Undefined: the message was not late, or no proof exists. */
  return async (messages: readonly Entry[]): Promise<(Entry | undefined)[]> => {
    const most = Math.min(maxLookedAt, Math.floor(maxLookedAtInAll / messages.length))
    const found: (Entry | undefined)[] = []
    for (const message of messages) found.push(await newerBefore(message, Math.max(minLookedAt, most)))
    return found
  }

  async function newerBefore(message: Entry, most: number): Promise<Entry | undefined> {
    const { position, at, topic, stream, retained, queue, institutionId } = message
    // Control states end by themselves. Messages of the previous release (no `institutionId`) are not in order.
    const isJudged = queue.keep === 'latest' && institutionId !== undefined
    if (!isJudged || !retained || stream === undefined) return undefined
    let newest: { position: number; time: number } | undefined
    let earliest = at
    let lookedAt = 0
    for await (const before of newestFirst(store, indexesOf(stream), position)) {
      if (++lookedAt > most || before.position < journal.floor()) break
      if (before.topic !== topic) continue
      const stored = await store.get(journalKey(before.position))
      if (!stored) break
      const { entry } = readEntry(before.position, stored)
      if (!entry.retained) continue
      const { time } = entry.retained
      if (time > entry.at + defendedMs || entry.at > earliest + toleranceMs) break
      earliest = Math.min(earliest, entry.at)
      if (time > (newest?.time ?? retained.time)) newest = { position: before.position, time }
    }
    if (!newest) return undefined
    const positions = await Promise.all([clearedKey(topic), clockBehindKey].map(readPosition))
    if (positions.some((position) => position > (newest?.position ?? 0))) return undefined
    // The floor is read again at the end, because messages in between may have been removed meanwhile.
    return newest.position < journal.floor() ? undefined : journal.get(newest.position)
  }

  async function readPosition(key: string): Promise<number> {
    const stored = await store.get(key)
    return stored ? Number(stored.toString('latin1', 0, padded(0).length)) : 0
  }
}
