import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** A request, when it was answered. */
interface Answered {
  reqId: string
  /** Null where it did not come so far. */
  method: string | null
  url: string | null
  route: string | null
  status: number
  ms?: number
  remoteAddress: string
  userId?: string | undefined
  /** Why Node refused it. */
  reason?: string
}

export type RequestLog = ReturnType<typeof createRequestLog>

/** One line and one count for every answer of the HTTPS port, whoever gave it. */
export function createRequestLog({ log, metrics }: { log: Log; metrics: Metrics }) {
  return ({ url, ...answered }: Answered, level: 'debug' | 'info' = 'info'): void => {
    const { route, status } = answered
    metrics.httpsRequests.inc({ route: route ?? 'none', status })
    log[level]({ ...answered, path: url?.split('?')[0]?.slice(0, 200) ?? null }, 'request')
  }
}
