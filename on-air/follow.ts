import type { Entry } from '../journal/entry.ts'
import type { Journal } from '../journal/journal.ts'

export type Following = ReturnType<typeof follow>

/** Messages that are read together. */
const readAtOnce = 100
/**
 * All who wait wake at multiples of this time, milliseconds, and so together: there may be hundreds of delays, and what
 * is written in one turn of the event loop costs a third.
 */
const beatMs = 100
/** After a failed read, the next attempt comes after this time, milliseconds. */
const retryMs = 1_000

/**
 * Follows the journal from a position on. Hands on each message in the order of positions, `delayMs` after its
 * acceptance, and waits for each. The journal is the only source, so no message is missing or comes twice, and a
 * follower that falls behind takes no memory.
 */
export function follow(parts: {
  journal: Journal
  clock: () => number
  delayMs: number
  /** The last position that counts as handed on. */
  from: number
  deliver: (entry: Entry) => Promise<void> | undefined
  /** The journal has dropped messages that were not handed on yet. */
  missed: () => void
  failed: (error: unknown) => void
}) {
  const { journal, clock, delayMs, deliver, missed, failed } = parts
  let position = parts.from
  /** Messages that were read at `readAt`, and wait for their time. The journal was read up to `readUpTo`. */
  let waiting: Entry[] = []
  let readUpTo = position
  let readAt = 0
  let isRunning = false
  let isEnded = false
  let timer: NodeJS.Timeout | undefined
  const leave = journal.onEach(wake)
  wake()

  return {
    /** All messages up to here have been handed on, or are being handed on now. */
    position: (): number => position,
    end(): void {
      isEnded = true
      clearTimeout(timer)
      leave()
    },
  }

  function wake(): void {
    if (isRunning || isEnded || timer) return
    isRunning = true
    void run()
      .catch((error: unknown) => {
        if (isEnded) return
        failed(error)
        later(retryMs)
      })
      .finally(() => {
        isRunning = false
        if (position < journal.head()) wake()
      })
  }

  async function run(): Promise<void> {
    while (!isEnded && position < journal.head()) {
      if (waiting.length === 0) await read()
      for (let next = waiting[0]; next && !isEnded; next = waiting[0]) {
        // No message waits longer than `delayMs`, also when the clock is set back.
        const waitMs = Math.min(next.at - clock(), readAt - performance.now()) + delayMs
        if (delayMs > 0 && waitMs > 0) return later(waitMs + untilBeat(performance.now() + waitMs))
        waiting.shift()
        position = next.position
        await deliver(next)
      }
      position = readUpTo
    }
  }

  async function read(): Promise<void> {
    if (position < journal.floor() - 1) {
      position = journal.floor() - 1
      missed()
    }
    const { entries, upTo } = await journal.read(position, journal.head(), readAtOnce)
    waiting = entries
    readUpTo = upTo
    readAt = performance.now()
  }

  function later(ms: number): void {
    timer = setTimeout(() => {
      timer = undefined
      wake()
    }, ms)
  }
}

/** Milliseconds from a moment to the next beat. */
function untilBeat(moment: number): number {
  return beatMs - (moment % beatMs)
}
