import pino, { type Logger } from 'pino'
import { prettyFactory } from 'pino-pretty'
import { createLogOutput } from './log-output.ts'
import { legibleJson, visibleJson } from './visible.ts'

export type Log = Logger

/**
 * Makes the log: easy to read on a terminal, JSON lines otherwise (design.md §3). Escapes control characters, because
 * clients could move the cursor with them. Redacts passwords and tokens that a caller logs by mistake.
 */
export function createLog(level: string): Log {
  const options = { level, redact: ['password', '*.password', 'token', '*.token', 'headers.authorization'] }
  const written = process.stdout.isTTY ? createPrinter() : visibleJson
  const output = createLogOutput((lines) =>
    log.warn({ lines }, 'log lines were lost: they could not be written'),
  )
  const log: Log = pino(options, { ...output, write: (line: string) => output.write(written(line)) })
  return log
}

/** Prints lines for people. Prints a line as it is if it cannot be printed, for example because of a field `valueOf`. */
function createPrinter(): (line: string) => string {
  const print = prettyFactory({ ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss.l' })
  return (line) => {
    const legible = legibleJson(line)
    try {
      return print(legible)
    } catch {
      return legible
    }
  }
}
