import { cut } from '../../event/cut.ts'
import type { AttemptOutcome } from '../target.ts'

/** Longest reason of a failed attempt, characters. The rest is cut off. */
const maxReason = 200

/** The outcome of an attempt, from what a driver has returned. Throws if reading the returned value throws. */
export function readOutcome(returned: unknown): AttemptOutcome {
  const { result, status, reason, retryAfterMs } = Object(returned ?? {})
  const code = Number.isInteger(status) ? status : null
  if (returned === undefined || result === 'acknowledged') {
    return { result: 'acknowledged', status: code, reason: null }
  }
  if (result !== 'refused' && result !== 'failed' && result !== 'gone') {
    return failed('the driver returned something that is no outcome')
  }
  return {
    result,
    status: code,
    reason: cut(String(reason ?? result), maxReason),
    ...(Number.isFinite(retryAfterMs) && { retryAfterMs }),
  }
}

/** The outcome of an attempt that failed with this error. */
export function failedBy(error: unknown): AttemptOutcome {
  return failed(messageOf(error))
}

/** The message of an error, whatever was thrown. Never throws. */
export function messageOf(error: unknown): string {
  try {
    return cut(error instanceof Error ? String(error.message) : String(error), maxReason)
  } catch {
    return 'the driver threw something that cannot be read'
  }
}

export function failed(reason: string): AttemptOutcome {
  return { result: 'failed', status: null, reason: cut(reason, maxReason) }
}
