import type { Log } from '../telemetry/log.ts'
import type { Metrics, RefusedReason } from '../telemetry/metrics.ts'
import { createRareWarning } from '../telemetry/rare-warning.ts'

/** Counts refused connections, and warns rarely: strangers must not fill the log. */
export function createRefusedConnections({ log, metrics }: { log: Log; metrics: Metrics }) {
  const warn = createRareWarning(log, 'connection refused')
  return (
    reason: RefusedReason,
    about: { remoteAddress: string | undefined; detail?: string | undefined },
  ): void => {
    metrics.connectionsRefused.inc({ reason })
    warn(`${reason} ${about.remoteAddress}`, { reason, ...about })
  }
}
