import type { RetainedMessages } from '../journal/retained.ts'
import type { Trimming } from '../journal/trimming.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { HubTime } from './hub-time.ts'
import type { Sessions } from './session/sessions.ts'

/** Time between two searches for expired retained messages and sessions, milliseconds. */
const sweepIntervalMs = 30_000

/** Removes expired messages and sessions every 30 s, from `start` on. */
export function createSweeping(parts: {
  hubTime: HubTime
  retained: RetainedMessages
  trimming: Trimming
  sessions: Sessions
  log: Log
  metrics: Metrics
}) {
  const { hubTime, retained, trimming, sessions, log, metrics } = parts
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
    // Removes expired retained values before it trims the journal. The journal keeps the message of each retained value
    // that is left.
    const trimmed = retained.sweep().then(() => trimming.sweep())
    Promise.all([trimmed, sessions.sweep(), hubTime.save()]).catch((error: unknown) => {
      metrics.storeFailures.inc()
      log.error({ err: error }, 'expired messages and sessions not removed')
    })
  }
}
