import pino, { type Logger } from 'pino'
import pretty from 'pino-pretty'
import { createLogOutput } from './log-output.ts'
import { legibleJson, visibleJson } from './visible.ts'

export type Log = Logger

/**
 * Makes the log: easy to read on a terminal, JSON lines otherwise (design.md §3). Escapes control characters, because
 * clients could move the cursor with them. Redacts passwords and tokens that a caller logs by mistake.
 */
export function createLog(level: string): Log {
  const options = { level, redact: ['password', '*.password', 'token', '*.token', 'headers.authorization'] }
  if (process.stdout.isTTY) {
    const printer = pretty({ sync: true, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss.l' })
    return pino(options, { write: (line: string) => void printer.write(legibleJson(line)) })
  }
  const output = createLogOutput((lines) =>
    log.warn({ lines }, 'log lines were lost: they could not be written'),
  )
  const log: Log = pino(options, { ...output, write: (line: string) => output.write(visibleJson(line)) })
  return log
}
