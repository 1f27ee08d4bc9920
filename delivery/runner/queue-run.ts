import type { Waiting } from '../queue/queue.ts'
import type { WorkItem } from '../queue/work-item.ts'

/** How a queue stands at the moment. */
export interface QueueRunState {
  state: 'idle' | 'delivering' | 'retrying'
  failures: number
  /** ISO 8601; null: at once. */
  nextTry: string | null
  lastReason: string | null
}

/** The state of a queue in the node that works it off. */
export interface QueueRun {
  running: boolean
  /** Something has changed while the run was under way: it looks at the queue once more before it ends. */
  isWoken: boolean
  timer?: NodeJS.Timeout
  /** Failed attempts in a row. */
  failures: number
  /** When the pause of the queue ends, milliseconds since the epoch. */
  notBefore: number
  lastReason: string | null
  /** The head was refused too often: try the item behind it, to see whether the endpoint takes other messages. */
  probing: boolean
  /** Probing begins as soon as there is an item behind the head. */
  probeOnArrival: boolean
  /** An item that was set aside was tried last: now the head of the queue is next. */
  triedAside: boolean
  /** The item that is tried, until its outcome is stored. */
  current?: WorkItem
}

/** The item that is tried next. */
export interface Next {
  item: WorkItem
  /** The head of the queue, which was refused too often: `item` is tried in its stead. */
  refusedHead?: WorkItem
}

/** Refusals after which a message steps out of the way of those behind it (design.md §10). */
const maxRefusals = 5
/** Longest pause of a queue: an endless `Retry-After` must not silence it for days. */
export const maxPauseMs = 3_600_000

export function createQueueRun(): QueueRun {
  return {
    ...{ running: false, isWoken: false, failures: 0, notBefore: 0, lastReason: null },
    ...{ probing: false, probeOnArrival: false, triedAside: false },
  }
}

export function runState(run: QueueRun | undefined, { head, aside }: Waiting, now: number): QueueRunState {
  const { failures = 0, notBefore = 0, lastReason = null, current } = run ?? {}
  const isRetrying = failures > 0 || aside !== undefined
  const asideUntil = head ? 0 : (aside?.asideUntil ?? 0)
  const next = notBefore > now ? notBefore : asideUntil
  return {
    state: current ? 'delivering' : isRetrying ? 'retrying' : 'idle',
    failures,
    nextTry: !current && next > now ? new Date(next).toISOString() : null,
    lastReason: lastReason ?? aside?.attempts.at(-1)?.reason ?? null,
  }
}

/** The item to try now, or else the time from which there will be one. */
export function nextItem(run: QueueRun, waiting: Waiting, now: number): Next | { at?: number } {
  const { head, second, due, aside } = waiting
  if (!head && !due) return aside?.asideUntil === undefined ? {} : { at: aside.asideUntil }
  // No pause ends so far ahead: the clock was set back. So the pause ends now.
  if (run.notBefore > now + maxPauseMs) run.notBefore = 0
  if (run.notBefore > now) return { at: run.notBefore }
  if (due && !(head && run.triedAside)) return { item: due }
  const isProbing = run.probing && head !== undefined && head.refusals >= maxRefusals
  if (isProbing && second) return { item: second, refusedHead: head }
  return head ? { item: head } : {}
}

/** Starts probing at once. Call it when a new item arrives while the head of the queue was refused too often. */
export function probe(run: QueueRun): void {
  Object.assign(run, { probeOnArrival: false, probing: true, notBefore: 0 })
}

/** Ends pause and probing: a delivery worked, or there is nothing left to deliver. */
export function recover(run: QueueRun): void {
  Object.assign(run, { failures: 0, notBefore: 0, lastReason: null, probing: false })
}

/** Whether a queue has to pause after an attempt in vain. If not, it goes on with another item. */
export function mustPause(
  run: QueueRun,
  { item, refusedHead }: Next,
  isRefused: boolean,
  hasSecond: boolean,
): boolean {
  // The endpoint takes other messages and refuses only this one, so the queue goes on.
  if (item.asideUntil !== undefined && isRefused) return false
  const isTooOften = isRefused && !refusedHead && item.refusals + 1 >= maxRefusals
  run.probing = isTooOften && hasSecond
  if (run.probing) return false
  run.probeOnArrival = isTooOften
  return true
}
