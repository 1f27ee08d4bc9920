import type { RetainedMessages } from '../journal/retained.ts'
import type { Trimming } from '../journal/trimming.ts'
import type { Nodes } from '../store/nodes/nodes.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { HubTime } from './session/hub-time.ts'
import type { Sessions } from './session/sessions.ts'

/** Between two looks for expired retained messages and sessions. */
const sweepIntervalMs = 30_000

/** Removes what is over, now and then, from `start` on. */
export function createSweeping(parts: {
  nodes: Nodes
  hubTime: HubTime
  retained: RetainedMessages
  trimming: Trimming
  sessions: Sessions
  log: Log
  metrics: Metrics
}) {
  const { nodes, hubTime, retained, trimming, sessions, log, metrics } = parts
  let timer: NodeJS.Timeout | undefined

  return {
    start(): void {
      timer = setInterval(sweep, sweepIntervalMs).unref()
    },
    stop(): void {
      clearInterval(timer)
    },
  }

  function sweep(): void {
    hubTime.checkClock()
    const saved = nodes.isLeader() ? hubTime.save() : undefined
    // What retained values have let go of, the journal need not keep.
    const trimmed = retained.sweep().then(() => trimming.sweep())
    Promise.all([trimmed, sessions.sweep(), saved]).catch((error: unknown) => {
      metrics.storeFailures.inc()
      log.error({ err: error }, 'expired messages and sessions not removed')
    })
  }
}
