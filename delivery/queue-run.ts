import type { WorkItem } from './queue/work-item.ts'

/** How a queue stands at the moment. */
export interface QueueRunState {
  state: 'idle' | 'delivering' | 'retrying'
  failures: number
  /** ISO 8601; null: at once. */
  nextTry: string | null
  lastReason: string | null
}

/** A queue on its way. */
export interface QueueRun {
  running: boolean
  /** Something has changed while it was running: it looks once more before it ends. */
  isWoken: boolean
  timer?: NodeJS.Timeout
  /** In a row. */
  failures: number
  /** Milliseconds since the epoch. */
  notBefore: number
  lastReason: string | null
  /** The head was refused too often: the item behind it tells whether the endpoint is well otherwise. */
  probing: boolean
  /** The same, as soon as there is one behind it. */
  probeOnArrival: boolean
  /** One from aside was tried last: now it is the turn of the line. */
  triedAside: boolean
  current?: WorkItem
}

/** How a queue stands: `run` on its way, `head` first of its line, `aside` the next of those that stepped out of it. */
export function runState(
  run: QueueRun | undefined,
  { head, aside }: { head?: WorkItem; aside: WorkItem | undefined },
  now: number,
): QueueRunState {
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

export function createQueueRun(): QueueRun {
  return {
    ...{ running: false, isWoken: false, failures: 0, notBefore: 0, lastReason: null },
    ...{ probing: false, probeOnArrival: false, triedAside: false },
  }
}
