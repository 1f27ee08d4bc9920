import type { Log } from './log.ts'
import type { FieldsOf, MessageAt } from './messages.ts'

/** Time between two lines about the same subject, milliseconds. */
const intervalMs = 60_000
/** Maximum number of subjects with a line within the interval. An attacker may have many addresses. */
const maxSubjects = 100

/**
 * Logs a frequent warning. Each `subject` gets at most one line a minute. All subjects together get at most 100 lines a
 * minute. `times` counts the warnings about the subject since its last line, including the present warning. `leftOut`
 * counts the warnings that got no line and that no `times` counts.
 */
export function createRareWarning<Rare extends MessageAt<'warn'>>(
  log: Pick<Log, 'warn'>,
  message: Rare,
  now: () => number = () => performance.now(),
) {
  /** Subjects in the order of their last lines. */
  const lastOf = new Map<string, { at: number; left: number }>()
  let leftOut = 0

  return (subject: string, fields: Omit<FieldsOf<Rare>, 'times' | 'leftOut'>): void => {
    const last = lastOf.get(subject)
    if (last && now() - last.at < intervalMs) {
      last.left++
      return
    }
    if (!last && lastOf.size >= maxSubjects && !forgetOldest()) {
      leftOut++
      return
    }
    lastOf.delete(subject)
    lastOf.set(subject, { at: now(), left: 0 })
    const line = { ...fields, times: (last?.left ?? 0) + 1, ...(leftOut > 0 && { leftOut }) }
    log.warn(line as FieldsOf<Rare>, message)
    leftOut = 0
  }

  /** Makes room for another subject. Returns false if every subject had a line within the interval. */
  function forgetOldest(): boolean {
    for (const [subject, { at, left }] of lastOf) {
      if (now() - at < intervalMs) return false
      lastOf.delete(subject)
      leftOut += left
      return true
    }
    return false
  }
}
