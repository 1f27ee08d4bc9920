import pino, { type Logger } from 'pino'
import pretty from 'pino-pretty'
import { createLogOutput } from './log-output.ts'

export type Log = Logger

/**
 * The log: pretty on a terminal, JSON lines otherwise (design.md §3).
 * Passwords and tokens never reach it: callers log names, and what slips through is redacted.
 */
export function createLog(level: string): Log {
  const options = { level, redact: ['password', '*.password', 'token', '*.token', 'headers.authorization'] }
  if (process.stdout.isTTY) {
    return pino(options, pretty({ sync: true, ignore: 'pid,hostname', translateTime: 'SYS:HH:MM:ss.l' }))
  }
  const log: Log = pino(
    options,
    createLogOutput((lines) => log.warn({ lines }, 'log lines were lost: they could not be written')),
  )
  return log
}
