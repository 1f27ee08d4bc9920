import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** An answered request. */
interface Answered {
  reqId: string
  /** Null: Node refused the request before it had read the method. */
  method: string | null
  url: string | null
  route: string | null
  status: number
  ms?: number
  remoteAddress: string
  userId?: string | undefined
  /** Why Node refused the request. */
  reason?: string
}

export type RequestLog = ReturnType<typeof createRequestLog>

const minuteMs = 60_000
/** Maximum number of log lines a minute for requests without a user: strangers must not fill the log. */
const linesPerMinute = 600

/**
 * Counts and logs every answer of the HTTPS port. `leftOut` in a line: the number of requests without a line since the
 * previous line.
 */
export function createRequestLog({ log, metrics }: { log: Log; metrics: Metrics }) {
  let minute = 0
  let lines = 0
  let leftOut = 0

  return ({ url, ...answered }: Answered, level: 'debug' | 'info' = 'info'): void => {
    const { route, status, userId } = answered
    metrics.httpsRequests.inc({ route: route ?? 'none', status })
    // A line below the log level is not written. It counts neither for the limit nor for `leftOut`.
    if (!log.isLevelEnabled(level)) return
    if (userId === undefined && !hasLine()) {
      leftOut++
      return
    }
    const path = url?.split('?')[0]?.slice(0, 200) ?? null
    const line = { ...answered, path, ...(leftOut > 0 && { leftOut }) }
    if (level === 'info') log.info(line, 'request')
    else log.debug(line, 'request')
    leftOut = 0
  }

  function hasLine(): boolean {
    const now = Math.floor(performance.now() / minuteMs)
    if (now !== minute) lines = 0
    minute = now
    return ++lines <= linesPerMinute
  }
}
