import pino, { type Logger } from 'pino'
import { prettyFactory } from 'pino-pretty'
import { createLimit } from './limit.ts'
import { createLogOutput } from './log-output.ts'
import type { FieldsOf, Level, LogMessage, MessageAt, Plain } from './messages.ts'
import { legibleJson, visibleJson } from './visible.ts'

/** The log of a node. It takes the messages of the table in `messages.ts`, each at its level and with its fields. */
export type Log = { readonly [L in Level]: Write<MessageAt<L>> } & {
  readonly level: string
  /** A log whose lines all have these fields. */
  child(fields: Record<string, unknown>): Log
  isLevelEnabled(level: Level): boolean
}

interface Write<M extends LogMessage> {
  <One extends M>(fields: FieldsOf<One>, message: One): void
  (message: Plain<M>): void
}

/** The same log for those who have texts of their own: drivers, and Fastify. */
export function logOfOthers(log: Log): Logger {
  return log as unknown as Logger
}

/**
 * Makes the log: easy to read on a terminal, JSON lines otherwise (design.md §3). Escapes control characters, because
 * clients could move the cursor with them. Redacts passwords and tokens that a caller logs by mistake.
 */
export function createLog(level: string): Log {
  const redact = ['password', '*.password', 'token', '*.token', 'headers.authorization']
  const options = { level, redact, hooks: { logMethod: createLimit() } }
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
