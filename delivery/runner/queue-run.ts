import type { Waiting } from '../queue/queue.ts'
import type { WorkItem } from '../queue/work-item.ts'

/** The current state of a queue, as operators see it. */
export interface QueueRunState {
  state: 'idle' | 'delivering' | 'retrying'
  failures: number
  /** End of the wait before the next attempt, ISO 8601. Null: there is no wait. */
  nextTry: string | null
  lastReason: string | null
}

/** The state of a queue, or of one of its lanes, in the node that works it off. */
export interface QueueRun {
  /** The lane. An empty text: the whole queue. */
  readonly lane: string
  running: boolean
  /** The queue or its target may have changed: look again before the run ends. */
  isWoken: boolean
  timer: NodeJS.Timeout | undefined
  /** Somebody asked for a try during an attempt. If the attempt fails, no pause follows. */
  retryAsked: boolean
  /** Failed attempts in a row. */
  failures: number
  /** When the pause of the queue ends, milliseconds since the epoch. */
  notBefore: number
  /** How long the pause was to be, milliseconds. */
  pauseMs: number
  lastReason: string | null
  /** The endpoint refused the head too often: try the item behind the head. */
  probing: boolean
  /** The endpoint refused the head too often, but no item is behind the head. When one arrives, probing begins. */
  probeOnArrival: boolean
  /**
   * The last attempt was with an item that is set aside. So the next attempt is with the head, even if such an item is
   * due.
   */
  triedAside: boolean
  /** The item of the next attempt, while it waits for its turn, and of the one under way. */
  chosen: WorkItem | undefined
  /** Set while the lane waits for others: the lowest number has waited longest. */
  waitingSince: number | undefined
  /** The item of the attempt under way, until its outcome is stored. */
  current: WorkItem | undefined
}

/** The item of the next attempt. */
export interface Next {
  item: WorkItem
  /** Set while probing: the refused head. `item` is the item behind the head. */
  refusedHead?: WorkItem
}

/** After this many refusals, a message can be set aside (design.md §10). */
const maxRefusals = 5
/** Longest pause, milliseconds: no `Retry-After` can stop a queue for days. */
export const maxPauseMs = 3_600_000
/** A clock that is set back by less than this ends no pause, milliseconds. */
const setBackMs = 1_000

export function createQueueRun(lane: string): QueueRun {
  return {
    lane,
    running: false,
    isWoken: false,
    timer: undefined,
    retryAsked: false,
    failures: 0,
    notBefore: 0,
    pauseMs: 0,
    lastReason: null,
    probing: false,
    probeOnArrival: false,
    triedAside: false,
    chosen: undefined,
    waitingSince: undefined,
    current: undefined,
  }
}

export function runState(run: QueueRun | undefined, { head, aside }: Waiting, now: number): QueueRunState {
  const { failures = 0, notBefore = 0, lastReason = null, current } = run ?? {}
  const isRetrying = failures > 0 || aside !== undefined
  const asideUntil = head ? 0 : (aside?.asideUntil ?? 0)
  const next = notBefore > now ? notBefore : asideUntil
  return {
    // A queue that fails stays `retrying` during its next attempt, which may take 20 seconds.
    state: isRetrying ? 'retrying' : current ? 'delivering' : 'idle',
    failures,
    nextTry: !current && next > now ? new Date(next).toISOString() : null,
    lastReason: lastReason ?? aside?.attempts.at(-1)?.reason ?? null,
  }
}

/** The state of a queue whose lanes have these states. */
export function stateOfLanes(lanes: readonly QueueRunState[]): QueueRunState {
  const states = lanes.map(({ state }) => state)
  const tries = lanes.flatMap(({ nextTry }) => nextTry ?? [])
  return {
    state: (['retrying', 'delivering'] as const).find((state) => states.includes(state)) ?? 'idle',
    failures: Math.max(0, ...lanes.map(({ failures }) => failures)),
    nextTry: tries.sort()[0] ?? null,
    lastReason: lanes.find(({ lastReason }) => lastReason !== null)?.lastReason ?? null,
  }
}

/** The item to try now. `waitOf`: milliseconds until the time of an item. Otherwise `at` says when to look again, milliseconds since the epoch. */
export function nextItem(
  run: QueueRun,
  waiting: Waiting,
  now: number,
  waitOf: (item: WorkItem) => number = () => 0,
): Next | { at?: number } {
  const { second, due, aside } = waiting
  const wait = waiting.head ? waitOf(waiting.head) : 0
  // The head has not come to its time: what follows it waits too, but nothing that was tried before.
  const head = wait > 0 ? undefined : waiting.head
  if (!head && !due) {
    const times = [aside?.asideUntil, waiting.head && now + wait].filter((time) => time !== undefined)
    return times.length > 0 ? { at: Math.min(...times) } : {}
  }
  // `notBefore` is further ahead than the pause was long, so the clock was set back. End the pause.
  if (run.notBefore > now + run.pauseMs + setBackMs) run.notBefore = 0
  if (run.notBefore > now) return { at: run.notBefore }
  if (due && !(head && run.triedAside)) return { item: due }
  const isProbing = run.probing && head !== undefined && head.refusals >= maxRefusals
  if (isProbing && second) return { item: second, refusedHead: head }
  return head ? { item: head } : {}
}

/** Starts probing: an item arrived behind a head that was refused too often. */
export function probe(run: QueueRun): void {
  Object.assign(run, { probeOnArrival: false, probing: true, notBefore: 0 })
}

/** Ends pause and probing: a delivery succeeded, or no item is left to deliver. */
export function recover(run: QueueRun): void {
  Object.assign(run, { failures: 0, notBefore: 0, lastReason: null, probing: false })
}

/** Whether a queue has to pause after a failed attempt. The function also starts or ends probing. */
export function mustPause(
  run: QueueRun,
  { item, refusedHead }: Next,
  isRefused: boolean,
  hasSecond: boolean,
): boolean {
  // The item is aside already, so its refusal does not stop the queue.
  if (item.asideUntil !== undefined && isRefused) return false
  const isTooOften = isRefused && !refusedHead && item.refusals + 1 >= maxRefusals
  run.probing = isTooOften && hasSecond
  if (run.probing) return false
  run.probeOnArrival = isTooOften
  return true
}
