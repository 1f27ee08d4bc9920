import { cut } from '../../event/cut.ts'
import type { Output, ShownElement } from '../outputs/output.ts'
import type { ConfiguredOutput } from '../outputs/outputs.ts'
import { backOff } from '../runner/back-off.ts'
import type { OutputAttempt, Senders } from './senders/senders.ts'
import type { createSlots } from './slots.ts'
import type { Wanted, wantedOf } from './wanted.ts'

export type Lane = ReturnType<typeof createLane>

/** A lane as operators see it. */
export interface LaneState {
  /** `shown`: the other side has it. `test`: it has a made-up title. `nothing`: nothing is known of the livestream, or it is too old. */
  state: 'shown' | 'idle text' | 'test' | 'sending' | 'retrying' | 'nothing'
  /** The title that the other side has. */
  title: string | null
  since: string | null
  acknowledged: number
  failed: number
  /** Elements that were over before the other side had them. */
  stale: number
  failures: number
  nextTry: string | null
  lastReason: string | null
}

/** A line of the delivery log: an attempt, or a stretch of elements that were passed over. */
export interface LogLine {
  time: string
  result: OutputAttempt['result'] | 'stale'
  title: string | null
  duration: number | null
  reason: string | null
  /** Of a stretch: how many, and when the last one. */
  count?: number
  last?: string
}

/** With a maximum age, pauses end after this (deliveries.md), milliseconds. Outputs always have one. */
const longestPauseMs = 15_000
/** A new element is tried so soon after a failed attempt, milliseconds. */
const newElementMs = 1_000
/** Without any event, a lane looks again after this, milliseconds: the clock may have been set. */
const lookMs = 15_000
/** After a test, what plays comes back after this, milliseconds. */
const testMs = 10_000
/** So many lines of its delivery log are kept for each lane. */
export const keptLines = 20
/** So much of a title is kept for operators, characters: a publisher may send 400 kB of it. */
const keptTitle = 200

/**
 * Brings one livestream of an output to what it is to show. It knows no events, only states: what is over cannot be sent,
 * and nothing has to be stored.
 */
export function createLane(parts: {
  output: Output
  settings: ConfiguredOutput
  there: string
  /** What is to be shown now. */
  wanted: () => Promise<ReturnType<typeof wantedOf>>
  /** Whether this node may deliver. It must be asked before each attempt. */
  mayDeliver: () => Promise<boolean>
  senders: Pick<Senders, 'send' | 'look'>
  slots: ReturnType<typeof createSlots>
  signal: AbortSignal
  clock: () => number
  random: () => number
  /** Called after each attempt, and when elements were passed over. */
  noted: (attempt: OutputAttempt, failures: number) => void
  passedOver: (count: number) => void
}) {
  const { output, settings, there, wanted, mayDeliver, senders, slots, signal } = parts
  const { clock, random, noted, passedOver } = parts
  let isRunning = false
  let isWoken = false
  let timer: NodeJS.Timeout | undefined
  /** What the other side has. Undefined: unknown. */
  let has: { key: string; title: string; since: number; isIdle: boolean } | undefined
  /** The made-up element that the other side has. */
  let madeUp: Omit<ShownElement, 'toggle'> | undefined
  /** The element of the last attempt, or of the one that is waited for. */
  let tried: string | undefined
  let toggle: 0 | 1 = 0
  /** The element that the other side is to have, and does not have yet. */
  let pending: string | undefined
  /** Elements that have begun since the last look. */
  let begun = 0
  let stretch: (LogLine & { count: number }) | undefined
  /** When the next attempt may begin, and when the lane looked last, by a clock that nobody sets. */
  let notBefore = 0
  let isSending = false
  let lookedAt = Number.NEGATIVE_INFINITY
  /** What the other side called its connection at the last look. */
  let connection: string | undefined
  const counts = { acknowledged: 0, failed: 0, stale: 0, failures: 0 }
  let lastReason: string | null = null
  const lines: LogLine[] = []
  /** Attempts and tests, one after the other. */
  let tail: Promise<unknown> = Promise.resolve()

  return {
    /** An element has begun. */
    began(): void {
      begun++
      wake()
    },

    wake,

    /** Sends a made-up element, past what plays. That comes back after `testMs`. Undefined: another node delivers. */
    test(element: Omit<ShownElement, 'toggle'>): Promise<OutputAttempt | undefined> {
      return alone(async () => {
        if (!(await mayDeliver())) return undefined
        const attempt = await send(element)
        if (attempt.result === 'acknowledged') madeUp = element
        has = undefined
        notBefore = performance.now() + testMs
        wakeIn(testMs)
        return attempt
      })
    },

    state(): LaneState {
      const isRetrying = counts.failures > 0
      const pause = notBefore - performance.now()
      return {
        state: isRetrying
          ? 'retrying'
          : isSending
            ? 'sending'
            : has
              ? has.isIdle
                ? 'idle text'
                : 'shown'
              : madeUp
                ? 'test'
                : 'nothing',
        title: has?.title ?? madeUp?.title ?? null,
        since: has ? new Date(has.since).toISOString() : null,
        ...counts,
        nextTry: isRetrying && pause > 0 ? new Date(clock() + pause).toISOString() : null,
        lastReason,
      }
    },

    /** Newest first. */
    log: (): LogLine[] => [...(stretch ? [stretch] : []), ...lines.toReversed()],

    end(): void {
      clearTimeout(timer)
    },

    /** Resolves when no attempt is under way. */
    ended: (): Promise<unknown> => tail,
  }

  function wake(): void {
    isWoken = true
    if (isRunning || signal.aborted) return
    isRunning = true
    clearTimeout(timer)
    void run()
  }

  function wakeIn(ms: number): void {
    if (signal.aborted) return
    clearTimeout(timer)
    timer = setTimeout(wake, Math.max(1, ms)).unref()
  }

  /** Never rejects. No turn lies between the last look at `isWoken` and the end, so that no call is lost. */
  async function run(): Promise<void> {
    while (isWoken && !signal.aborted) {
      isWoken = false
      try {
        wakeIn(await alone(() => slots.run(step)))
      } catch (error) {
        // The store did not answer.
        lastReason = error instanceof Error ? error.message : String(error)
        wakeIn(newElementMs)
      }
    }
    isRunning = false
  }

  /** Makes an attempt if one is due. Returns the milliseconds after which to look again. */
  async function step(): Promise<number> {
    if (signal.aborted) return lookMs
    const { wanted: playing, until } = await wanted()
    const now = playing && !playing.isStale ? playing : inPlaceOfTest()
    if (!(await mayDeliver())) {
      has = undefined
      pending = undefined
      begun = 0
      retryNothing()
      return lookMs
    }
    passOver(now && !now.isIdle && now.key !== has?.key ? now.key : undefined)
    if (!now) {
      retryNothing()
      return Math.min(lookMs, until - clock())
    }
    if (now.key === has?.key) {
      retryNothing()
      return (await isForgotten()) ? 1 : Math.min(lookMs, until - clock())
    }
    if (now.key !== tried) {
      tried = now.key
      if (!now.isIdle) toggle = toggle === 0 ? 1 : 0
      if (now === playing) notBefore = Math.min(notBefore, performance.now() + newElementMs)
    }
    const pause = notBefore - performance.now()
    return pause > 0 ? pause : attempt(now)
  }

  async function attempt(now: Wanted): Promise<number> {
    const { result } = await send(now.shown)
    if (result !== 'acknowledged') return Math.max(1, notBefore - performance.now())
    pending = undefined
    madeUp = undefined
    has = { key: now.key, title: cut(now.shown.title, keptTitle), since: clock(), isIdle: now.isIdle }
    return 1
  }

  async function send(element: Omit<ShownElement, 'toggle'>): Promise<OutputAttempt> {
    const startedAt = performance.now()
    const time = new Date(clock()).toISOString()
    const request = output.request({ ...element, toggle }, settings, there)
    isSending = true
    const made = await senders.send(request, output.judge, signal).finally(() => {
      isSending = false
    })
    const { result, reason } = made
    if (result === 'acknowledged') {
      Object.assign(counts, { acknowledged: counts.acknowledged + 1, failures: 0 })
      notBefore = 0
    } else {
      Object.assign(counts, { failed: counts.failed + 1, failures: counts.failures + 1 })
      notBefore = performance.now() + Math.min(longestPauseMs, backOff(counts.failures, random))
    }
    lastReason = reason
    if (stretch && result === 'acknowledged') {
      keep(stretch)
      stretch = undefined
    }
    const title = cut(element.title, keptTitle)
    keep({ time, result, title, duration: Math.round(performance.now() - startedAt), reason })
    noted(made, counts.failures)
    return made
  }

  /** Where nothing plays, the made-up title must not stay: the idle text, or an empty text, takes its place. */
  function inPlaceOfTest(): Wanted | undefined {
    const { idle } = settings
    if (!madeUp || (output.needsText && idle === undefined)) return undefined
    const shown = { ...madeUp, artist: null, title: idle ?? '', type: 'idle', length: null }
    return { key: `after test of ${madeUp.start}`, shown, isIdle: true, isStale: false }
  }

  /** What failed is not wanted any more: a test, or an element that is too old or gone. */
  function retryNothing(): void {
    counts.failures = 0
    lastReason = null
  }

  /** Elements that are over, too old or without a text are counted, with one line of the log for a stretch (deliveries.md). */
  function passOver(next: string | undefined): void {
    const isOver = pending !== undefined && pending !== next
    const others = begun - (next !== undefined && next !== pending ? 1 : 0)
    pending = next
    begun = 0
    const count = (isOver ? 1 : 0) + Math.max(0, others)
    if (count === 0) return
    counts.stale += count
    passedOver(count)
    const time = new Date(clock()).toISOString()
    const reason = 'over, too old or without a text before it was delivered'
    stretch ??= { time, result: 'stale', title: null, duration: null, reason, count: 0 }
    Object.assign(stretch, { count: stretch.count + count, last: time })
  }

  function keep(line: LogLine): void {
    lines.push(line)
    if (lines.length > keptLines) lines.shift()
  }

  /** Whether the other side has lost the title, such as a mount whose source has connected again. */
  async function isForgotten(): Promise<boolean> {
    const { memory } = output
    if (!memory || performance.now() - lookedAt < lookMs - 1_000) return false
    lookedAt = performance.now()
    const answer = await senders.look(memory.request(settings, there), signal)
    const found = answer && memory.read(answer)
    if (!found) return false
    const isAnother = connection !== undefined && connection !== found.connection
    connection = found.connection
    if (!found.isEmpty && !isAnother) return false
    has = undefined
    isWoken = true
    return true
  }

  function alone<T>(work: () => Promise<T>): Promise<T> {
    const done = tail.then(work)
    tail = done.catch(() => undefined)
    return done
  }
}
