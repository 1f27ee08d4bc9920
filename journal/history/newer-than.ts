import { digitsOf } from '../../store/commit.ts'
import type { Store } from '../../store/store.ts'
import { type Entry, journalKey, readEntry } from '../entry.ts'
import type { Journal } from '../journal.ts'
import { clearedKey } from '../retained.ts'
import { clockBehindKey, farFutureMs } from '../retained-values.ts'
import { indexesOf, newestFirst } from './newest.ts'

/** Clocks of nodes differ: two times prove an order only if they are further apart than this, milliseconds. */
const toleranceMs = 60_000
/**
 * If the event time of a retained value is at most this far ahead of the clock (milliseconds), messages with older
 * event times certainly do not replace the value.
 */
const defendedMs = farFutureMs - 2 * toleranceMs
/** For one message, the search checks at most this many earlier messages. */
const maxLookedAt = 100
/** For a whole event, the search checks this many earlier messages, but at least `minLookedAt` per message. */
const maxLookedAtInAll = 1_000
const minLookedAt = 5

/**
 * Finds out why a message was never retained: an earlier message of its topic has a newer event time. The answer is the
 * earlier message.
 *
 * The search answers only what the store alone proves. So all nodes answer alike. Without the following four facts, a
 * message with an older event time may have been retained after all. All of them must hold from the moment when the hub
 * stored the earlier message:
 * - The journal has kept all messages.
 * - All event times of the topic were at most `defendedMs` ahead of the clock.
 * - No operator has cleared the topic.
 * - No node's clock was set back.
 */
export function createNewerThan({
  store,
  journal,
}: {
  store: Store
  journal: Pick<Journal, 'floor' | 'get'>
}) {
  /** Finds the newer message for each message of an event. Undefined: there is none, or no proof. */
  return async (messages: readonly Entry[]): Promise<(Entry | undefined)[]> => {
    const most = Math.min(maxLookedAt, Math.floor(maxLookedAtInAll / messages.length))
    const found: (Entry | undefined)[] = []
    for (const message of messages) found.push(await newerBefore(message, Math.max(minLookedAt, most)))
    return found
  }

  async function newerBefore(message: Entry, most: number): Promise<Entry | undefined> {
    const { position, at, topic, stream, retained, queue, institutionId } = message
    // Control states are left out, because they end by themselves. Messages of 3.0.0-beta.1 (no `institutionId`)
    // are left out, because their positions prove no order.
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
    // The floor may have risen meanwhile: the search could have missed removed messages.
    return newest.position < journal.floor() ? undefined : journal.get(newest.position)
  }

  async function readPosition(key: string): Promise<number> {
    const stored = await store.get(key)
    return stored ? Number(stored.toString('latin1', 0, digitsOf(0).length)) : 0
  }
}
