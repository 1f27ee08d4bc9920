import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

/** Time between two looks at the queues, milliseconds. */
const lookMs = 10_000
/** A queue stands still if nothing is delivered from it for this time, although it could be, milliseconds. */
const patienceMs = 30_000

/**
 * Notices queues that stand still: an item could be delivered, but is not. That is a fault of the hub. The queue is
 * logged, counted, and picked up. Returns a function that stops the watch.
 */
export function watchStuckQueues(parts: {
  /** The queues of this node from which it could deliver now, but does not. */
  standing: () => string[]
  /** Asks the store anew which node has the queue, and works it off. */
  pickUp: (queue: string) => Promise<void>
  log: Log
  metrics: Pick<Metrics, 'queuesStuck'>
  lookMs?: number
  patienceMs?: number
}): () => void {
  const { standing, pickUp, log, metrics, patienceMs: patience = patienceMs } = parts
  /** By queue: since when it stands still, on the clock of `performance.now()`. */
  let since = new Map<string, number>()
  const timer = setInterval(look, parts.lookMs ?? lookMs).unref()
  return () => clearInterval(timer)

  function look(): void {
    const now = performance.now()
    since = new Map(standing().map((queue) => [queue, since.get(queue) ?? now]))
    for (const [queue, at] of since) {
      if (now - at < patience) continue
      since.delete(queue)
      metrics.queuesStuck.inc()
      log.error({ queue, seconds: Math.round((now - at) / 1000) }, 'queue stood still, and is picked up')
      pickUp(queue).catch((err: unknown) => log.error({ err, queue }, 'queue not picked up'))
    }
  }
}
