import type { LogFn, Logger } from 'pino'
import { type MessageRow, messages } from './messages.ts'

/** Lines of one text in a minute. */
export const mostLimited = 20
const minuteMs = 60_000

/**
 * A hook of pino. It writes the first lines of a message with `isLimited` in each minute: while the store fails, each
 * event and each client has one. `leftOut` of the next line counts the others.
 */
export function createLimit(now: () => number = () => performance.now()) {
  const minutes = new Map<string, { ends: number; lines: number; leftOut: number }>()
  for (const [text, { isLimited }] of Object.entries<MessageRow>(messages))
    if (isLimited) minutes.set(text, { ends: 0, lines: 0, leftOut: 0 })

  return function (this: Logger, args: Parameters<LogFn>, write: LogFn): void {
    const [fields, text] = args
    const minute = minutes.get(`${text}`)
    if (!minute) {
      write.apply(this, args)
      return
    }
    if (now() >= minute.ends) {
      minute.ends = now() + minuteMs
      minute.lines = 0
    }
    if (++minute.lines > mostLimited) {
      minute.leftOut++
      return
    }
    const { leftOut } = minute
    minute.leftOut = 0
    write.call(this, leftOut > 0 ? Object.assign({ leftOut }, fields) : fields, text)
  }
}
