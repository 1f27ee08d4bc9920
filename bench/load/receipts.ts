import { type Delays, delaysOf } from './delays.ts'
import { createStampReader, microseconds } from './stamp.ts'

/** What came, with its delays from publish to receipt, milliseconds. */
export interface Receipts extends Delays {
  received: number
  /** Number of different events among the received messages. */
  events: number
  /** From the first publish to the last receipt, seconds. */
  seconds: number
  /** From `begin` to the last receipt, milliseconds. */
  ms: number
}

/**
 * `finish` gives up after this time without a message, milliseconds. A pause of the machine must not look like a loss.
 */
const patienceMs = 30_000

/** Collects when the messages of a load generator come. */
export function createReceipts() {
  const readStamp = createStampReader()
  let times = new Float64Array(0)
  let received = 0
  let firstStamp = 0
  let begun = 0
  /** Messages that were published before this time do not count, microseconds. */
  let countedFrom = 0
  let lastReceipt = 0
  let stamps = new Set<number>()

  return {
    /** Counts messages from now on. `fresh`: leaves out messages published before, such as retained values. */
    begin({ room, fresh = false }: { room: number; fresh?: boolean }): void {
      times = new Float64Array(room)
      received = 0
      firstStamp = 0
      stamps = new Set()
      begun = microseconds()
      countedFrom = fresh ? begun : 0
      lastReceipt = begun
    },

    /** Counts a message, if there is a stamp. */
    count(bytes: Buffer, start: number, end: number): void {
      const stamp = readStamp(bytes, start, end)
      if (Number.isNaN(stamp) || stamp < countedFrom) return
      lastReceipt = microseconds()
      if (firstStamp === 0) firstStamp = stamp
      times[received++] = (lastReceipt - stamp) / 1000
      stamps.add(stamp)
    },

    /** Resolves when `count` messages have come, when no message has come for `patienceMs`, or after `seconds`. */
    async finish({ count, seconds = Infinity }: { count: number; seconds?: number }): Promise<Receipts> {
      let seen = -1
      let since = performance.now()
      const deadline = since + seconds * 1000
      while (received < count && performance.now() < Math.min(since + patienceMs, deadline)) {
        if (received > seen) since = performance.now()
        seen = received
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      return {
        ...delaysOf(times.subarray(0, Math.min(received, times.length))),
        received,
        events: stamps.size,
        seconds: (lastReceipt - firstStamp) / 1e6,
        ms: (lastReceipt - begun) / 1000,
      }
    },
  }
}
