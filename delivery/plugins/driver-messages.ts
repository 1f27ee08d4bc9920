import type { Readable } from 'node:stream'
import { isRecord } from '../../event/json.ts'
import type { AttemptOutcome } from '../target.ts'
import type { PluginItem } from './driver.ts'
import type { PluginTarget } from './targets.ts'

/*
 * What the node and the process of a driver say to each other, as lines of JSON over a socket for each way. With one for
 * both, a node that writes to a process which has just ended would no longer read why. The channel of `fork` would not do:
 * a line there that is no message of Node ends the process that reads it.
 */

/** The file descriptors of the sockets in the process of a driver. */
export const fds = { toHub: 3, toDriver: 4 }

export type ToDriver =
  /** Comes once, first. `level`: the least level of the log. */
  | { kind: 'start'; file: string; target: PluginTarget; level: string }
  | { kind: 'deliver'; id: number; item: PluginItem; messageId: string; attempt: number }
  /** The signal of the attempt aborts. */
  | { kind: 'abort'; id: number; reason: string }
  /** The hub stops: close, and end. */
  | { kind: 'close' }

export type FromDriver =
  /** Comes every `beatMs`: the event loop of the driver runs. */
  | { kind: 'beat' }
  /** The driver can deliver. */
  | { kind: 'ready' }
  /** The driver cannot be loaded. The process ends. */
  | { kind: 'unusable'; reason: string }
  | { kind: 'outcome'; id: number; outcome: AttemptOutcome }
  /** A line of the log, as JSON. */
  | { kind: 'log'; line: string }
  /** So many lines of the log were left out, because they were too many. */
  | { kind: 'left-out'; lines: number }
  /** An uncaught error. The process ends. */
  | { kind: 'uncaught'; reason: string; stack: string }
  /** The driver has closed. Null: without an error. The process ends. */
  | { kind: 'closed'; problem: string | null }

/** Longest message of a driver, characters: a line of the log, escaped. */
const maxMessage = 65_536
/** Most messages that the hub reads in a second. Then the driver waits. */
export const messagesPerSecond = 1_000

/** Calls `heard` with each line of a channel. `tooLong`: a line got longer than `most`; nothing more is read. */
export function readLines(
  channel: Readable,
  heard: (line: string) => void,
  tooLong = () => {},
  most = Infinity,
) {
  let rest = ''
  channel.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) heard(line)
    if (rest.length <= most) return
    rest = ''
    channel.destroy()
    tooLong()
  })
}

/** Reads the messages of a driver. `strange`: it wrote something else, of which nothing is used. */
export function readFromDriver(
  channel: Readable,
  heard: (message: FromDriver) => void,
  strange: () => void,
): void {
  const hear = (line: string) => {
    const message = parse(line)
    if (isFromDriver(message)) heard(message)
    else strange()
  }
  readLines(channel, hear, strange, maxMessage)
}

/** The JSON value of a line. Undefined: it is none. */
function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function isFromDriver(message: unknown): message is FromDriver {
  if (!isRecord(message)) return false
  const { kind, reason, stack, id, outcome, line, lines, problem } = message
  if (kind === 'beat' || kind === 'ready') return true
  if (kind === 'unusable') return typeof reason === 'string'
  if (kind === 'uncaught') return typeof reason === 'string' && typeof stack === 'string'
  if (kind === 'outcome')
    return typeof id === 'number' && isRecord(outcome) && isTextOrNull(outcome.reason ?? null)
  if (kind === 'log') return typeof line === 'string' && isRecord(parse(line))
  if (kind === 'left-out') return typeof lines === 'number'
  return kind === 'closed' && isTextOrNull(problem)
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}

/** Time between two signs of life, milliseconds. */
export const beatMs = 1_000
/** Most lines that a driver may log in a second. */
export const linesPerSecond = 100
/** Longest line that a driver may log, characters. */
export const maxLine = 8_000
