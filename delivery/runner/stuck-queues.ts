import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

/** Time between two checks of the queues, milliseconds. */
const lookMs = 10_000
/** How long a queue stands still before it counts as stuck, milliseconds. */
const patienceMs = 30_000

/**
 * Watches for stuck queues: this node could deliver from them but, because of a fault of the hub, does not. Logs,
 * counts and picks up each of them. Returns a function that ends the watch.
 */
export function watchStuckQueues(parts: {
  /** Returns the queues from which this node could deliver now but does not. */
  stuckQueues: () => string[]
  /** Reads the lease from the store again, and tries the queue. */
  pickUp: (queue: string) => Promise<void>
  log: Log
  metrics: Pick<Metrics, 'queuesStuck'>
  lookMs?: number
  patienceMs?: number
}): () => void {
  const { stuckQueues, pickUp, log, metrics, patienceMs: patience = patienceMs } = parts
  /** When each queue was first seen standing still, milliseconds of `performance.now()`. */
  let since = new Map<string, number>()
  const timer = setInterval(look, parts.lookMs ?? lookMs).unref()
  return () => clearInterval(timer)

  function look(): void {
    const now = performance.now()
    since = new Map(stuckQueues().map((queue) => [queue, since.get(queue) ?? now]))
    for (const [queue, at] of since) {
      if (now - at < patience) continue
      since.delete(queue)
      metrics.queuesStuck.inc()
      log.error({ queue, seconds: Math.round((now - at) / 1000) }, 'queue stood still, and is picked up')
      pickUp(queue).catch((err: unknown) => log.error({ err, queue }, 'queue not picked up'))
    }
  }
}
