import type { Log } from './log.ts'

/** Between two lines about the same, milliseconds. */
const intervalMs = 60_000

/** A warning that may be due very often: at most one line a minute about each `subject`, with how many it stands for. */
export function createRareWarning(log: Log, message: string, now = () => performance.now()) {
  const lastOf = new Map<string, { at: number; left: number }>()

  return (subject: string, fields: Record<string, unknown>): void => {
    const last = lastOf.get(subject)
    if (last && now() - last.at < intervalMs) {
      last.left++
      return
    }
    lastOf.set(subject, { at: now(), left: 0 })
    log.warn({ ...fields, times: (last?.left ?? 0) + 1 }, message)
  }
}
