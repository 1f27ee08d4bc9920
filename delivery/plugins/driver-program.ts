import { Socket } from 'node:net'
import { setPriority } from 'node:os'
import { Worker } from 'node:worker_threads'
import pino from 'pino'
import { type CreateDriver, loadDriver, type PluginDriver } from './driver.ts'
import {
  beatMs,
  type FromDriver,
  fds,
  linesPerSecond,
  maxLine,
  readLines,
  type ToDriver,
} from './driver-messages.ts'
import { failedBy, messageOf, readOutcome } from './outcome.ts'

/*
 * The process of one driver: docs/decisions, "A driver has a process of its own". `driver-process.ts` starts it.
 */

const toHub = new Socket({ fd: fds.toHub, readable: true, writable: true })
const fromHub = new Socket({ fd: fds.toDriver, readable: true, writable: true })
const send = (message: FromDriver, sent = () => {}) => void toHub.write(`${JSON.stringify(message)}\n`, sent)
// Node has read what it needs. A driver gets its settings from the configuration only.
for (const name of Object.keys(process.env)) if (name !== 'TZ') delete process.env[name]

endWithTheHub()
yieldToTheHub()
process.on('uncaughtException', endUncaught)
setInterval(() => send({ kind: 'beat' }), beatMs)

/** How to abort the attempts that are under way, by their ids. */
const attempts = new Map<number, AbortController>()
let driver: PluginDriver | undefined

readLines(fromHub, (line) => {
  const message: ToDriver = JSON.parse(line)
  if (message.kind === 'start') void start(message)
  if (message.kind === 'deliver') void deliver(message)
  if (message.kind === 'abort') attempts.get(message.id)?.abort(new Error(message.reason))
  if (message.kind === 'close') void close()
})

async function start({ file, target, level }: ToDriver & { kind: 'start' }): Promise<void> {
  try {
    const create: CreateDriver = await loadDriver(file)
    const made: unknown = await create(target, { log: createLog(level) })
    if (!isDriver(made)) throw new Error('the driver made no object with a function "deliver"')
    driver = made
    send({ kind: 'ready' })
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? `: ${messageOf(error.cause)}` : ''
    send({ kind: 'unusable', reason: messageOf(error) + cause }, () => process.exit(1))
  }
}

async function deliver({ id, item, messageId, attempt }: ToDriver & { kind: 'deliver' }): Promise<void> {
  const aborting = new AbortController()
  attempts.set(id, aborting)
  const { signal } = aborting
  const outcome = await (async () =>
    readOutcome(await driver?.deliver(item, { messageId, attempt, signal })))()
    // A function of somebody else may throw anything.
    .catch(failedBy)
  attempts.delete(id)
  send({ kind: 'outcome', id, outcome })
}

async function close(): Promise<void> {
  const problem = await (async () => driver?.close?.())().then(() => null, messageOf)
  send({ kind: 'closed', problem }, () => process.exit(0))
}

function isDriver(made: unknown): made is PluginDriver {
  return typeof made === 'object' && made !== null && 'deliver' in made && typeof made.deliver === 'function'
}

/** Reports an uncaught error, and ends the process. A driver with a handler of its own may go on. */
function endUncaught(error: unknown): void {
  if (process.listenerCount('uncaughtException') > 1) return
  const stack = error instanceof Error ? String(error.stack).slice(0, maxLine) : ''
  send({ kind: 'uncaught', reason: messageOf(error), stack }, () => process.exit(1))
}

/**
 * A log whose lines go to the hub. Lines are bounded in length and number: nothing that a driver logs may keep the hub
 * from its work.
 */
function createLog(level: string) {
  let second = 0
  let lines = 0
  let leftOut = 0
  setInterval(() => {
    if (leftOut > 0) send({ kind: 'left-out', lines: leftOut })
    leftOut = 0
  }, beatMs).unref()
  return pino(
    { level, base: null, timestamp: false },
    {
      write(line: string) {
        const now = Math.floor(performance.now() / 1000)
        if (now !== second) lines = 0
        second = now
        if (++lines > linesPerSecond) leftOut++
        else send({ kind: 'log', line: line.length > maxLine ? shortened(line) : line })
      },
    },
  )
}

/** A line that is too long, with its level and the beginning of its message. */
function shortened(line: string): string {
  const { level, msg } = JSON.parse(line)
  return JSON.stringify({ level, msg: String(msg ?? '').slice(0, 1_000), characters: line.length })
}

/**
 * Ends this process, and those that the driver has started, when the hub has ended, whatever the driver does. If the
 * driver blocks the event loop, the end of the sockets is not noticed. So a thread looks for it as well. Signals are for the
 * hub: it says when to close.
 */
function endWithTheHub(): void {
  const end = () => process.kill(-process.pid, 'SIGKILL')
  for (const socket of [toHub, fromHub]) socket.on('error', end).on('close', end)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  const hub = Number(process.argv[2])
  const watch = `setInterval(() => { if (process.ppid !== ${hub}) process.kill(-process.pid, 'SIGKILL') }, ${beatMs})`
  new Worker(watch, {
    eval: true,
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 8 },
  }).unref()
}

/** Whatever the driver computes, the hub has the processor first. */
function yieldToTheHub(): void {
  try {
    setPriority(5)
  } catch {
    // The service of systemd may forbid it. Then all share alike.
  }
}
