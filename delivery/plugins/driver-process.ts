import { type ChildProcess, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { startDeadline } from '../../store/deadline.ts'
import type { Log } from '../../telemetry/log.ts'
import type { DriverEnd } from '../../telemetry/metrics.ts'
import { nodeOptions } from '../node-options.ts'
import { backOff } from '../runner/back-off.ts'
import type { AttemptOutcome } from '../target.ts'
import { attemptMs, type HubDriver, type PluginItem } from './driver.ts'
import { type FromDriver, fds, messagesPerSecond, readFromDriver, type ToDriver } from './driver-messages.ts'
import { createDriverOutput, logLine } from './driver-output.ts'
import { failed, readOutcome } from './outcome.ts'
import type { PluginTarget } from './targets.ts'

/** What operators see of a driver. */
export interface DriverState {
  state: 'starting' | 'running' | 'down'
  /** How often its process has ended since the node started, other than by a stop of the hub. */
  ends: number
  /** The last end. Null: there was none. */
  lastEnd: { at: string; reason: string } | null
}

/** A driver in a process of its own. */
export interface DriverProcess extends HubDriver {
  /** Starts the process. `changed` is called each time when the driver can deliver, and when it ended before that. */
  start(changed: (isReady: boolean) => void): void
  state(): DriverState
  /** Ends the process, which has a moment to close. Rejects with why it did not. */
  close(): Promise<void>
}

export interface DriverLimits {
  /** Longest time until the driver can deliver, milliseconds. */
  startMs: number
  /** The event loop of the driver may be blocked for so many looks, which are a second apart. */
  missedLooks: number
  attemptMs: number
  /** Time that a driver has to end an attempt after its signal, milliseconds. */
  graceMs: number
  /** Time that a driver has to close, milliseconds. */
  closeMs: number
  /** Largest heap, megabytes. */
  heapMb: number
  /** Most memory, including the heap, buffers and code, megabytes. */
  memoryMb: number
  /** Longest pause before the process starts again, milliseconds. */
  maxPauseMs: number
}

const driverLimits: DriverLimits = {
  startMs: 30_000,
  missedLooks: 20,
  attemptMs,
  graceMs: 2_000,
  closeMs: 2_000,
  heapMb: 256,
  memoryMb: 512,
  maxPauseMs: 60_000,
}

const stopping = 'the hub is stopping'
const lookMs = 1_000
const memoryLookMs = 250
/** How long the output is still read after the process has ended, milliseconds. */
const restMs = 1_000

/**
 * A driver of the operator's own, in a process of its own: whatever the driver does, the node goes on
 * (docs/decisions, "A driver has a process of its own"). A process that ends starts again, after pauses that grow.
 */
export function createDriverProcess(parts: {
  /** Path of the file of the driver. */
  file: string
  target: PluginTarget
  log: Log
  ended: (reason: DriverEnd) => void
  limits?: Partial<DriverLimits>
}): DriverProcess {
  const { file, target, log } = parts
  const limits = { ...driverLimits, ...parts.limits }
  const shown: DriverState = { state: 'starting', ends: 0, lastEnd: null }
  let run: Run | undefined
  /** Ends in a row, without a message that the target took in between. */
  let failures = 0
  let lastId = 0
  let pause: NodeJS.Timeout | undefined
  let changed = (_isReady: boolean) => {}
  let isClosing = false

  return {
    start(onChanged) {
      changed = onChanged
      begin()
    },

    state: () => shown,

    async deliver(item, { messageId, attempt, signal }): Promise<AttemptOutcome> {
      if (signal.aborted) return failed(stopping)
      if (!run || shown.state !== 'running') return failed('the driver is not running')
      return tryOnce(run, { item, messageId, attempt }, signal)
    },

    async close(): Promise<void> {
      isClosing = true
      clearTimeout(pause)
      if (!run) return
      const closing = run
      const late = setTimeout(() => {
        closing.problem = 'not closed in time'
        closing.kill()
      }, limits.closeMs)
      send(closing, { kind: 'close' })
      const { problem } = await closing.over
      clearTimeout(late)
      if (problem !== null) throw new Error(problem)
    },
  }

  function begin(): void {
    shown.state = 'starting'
    const started = startRun(parts, limits, (message) => heard(started, message))
    run = started
    send(started, { kind: 'start', file, target, level: log.level })
    void started.over.then(({ reason, why, stack }) => {
      run = undefined
      // Nobody knows which of several items ended it. The one that is to blame will do it again.
      for (const { settle } of started.attempts.values())
        settle({ result: 'refused', status: null, reason: `the driver ended: ${why}` })
      if (isClosing) return
      const at = new Date().toISOString()
      const isNews = failures === 0 || shown.lastEnd?.reason !== why
      const pauseMs = Math.min(limits.maxPauseMs, backOff(++failures, Math.random))
      Object.assign(shown, { state: 'down', ends: shown.ends + 1, lastEnd: { at, reason: why } })
      parts.ended(reason)
      const line = { file, reason: why, stack, startsInMs: Math.round(pauseMs) }
      // Further ends for the same reason tell operators nothing new.
      if (isNews) log.error(line, 'plugin driver ended')
      else log.debug(line, 'plugin driver ended')
      pause = setTimeout(begin, pauseMs)
      if (started.isStarting) changed(false)
    })
  }

  function heard(from: Run, message: FromDriver): void {
    if (message.kind === 'beat') from.missed = 0
    if (message.kind === 'ready') {
      from.isStarting = false
      shown.state = 'running'
      if (failures > 0) log.info({ file }, 'plugin driver runs again')
      changed(true)
    }
    const attempt = message.kind === 'outcome' ? from.attempts.get(message.id) : undefined
    if (message.kind === 'outcome' && attempt) {
      const outcome = readOutcome(message.outcome)
      if (outcome.result === 'acknowledged') failures = 0
      attempt.settle(outcome)
    }
    if (message.kind === 'log') logLine(log, message.line)
    if (message.kind === 'left-out')
      log.warn({ lines: message.lines }, 'plugin driver logs too much, and lines were left out')
    if (message.kind === 'unusable') from.end('load', message.reason)
    if (message.kind === 'uncaught') from.end('error', message.reason, message.stack)
    if (message.kind === 'closed') from.problem = message.problem
  }

  /** Ends the process because of one attempt. The others are not to blame. */
  function late(of: Run, id: number): void {
    for (const [other, { settle }] of of.attempts)
      if (other !== id) settle(failed('the driver ended because of another item'))
    of.end('late', 'it did not end an attempt after its signal')
  }

  function tryOnce(
    of: Run,
    what: { item: PluginItem; messageId: string; attempt: number },
    signal: AbortSignal,
  ): Promise<AttemptOutcome> {
    const id = ++lastId
    return new Promise((resolve) => {
      let timer = setTimeout(() => abort(`no answer within ${limits.attemptMs / 1000} s`), limits.attemptMs)
      const abort = (reason: string) => {
        send(of, { kind: 'abort', id, reason })
        clearTimeout(timer)
        timer = setTimeout(() => late(of, id), limits.graceMs)
      }
      // The hub waits no longer. The driver must still end the attempt.
      const stop = () => {
        abort(stopping)
        resolve(failed(stopping))
      }
      const settle = (outcome: AttemptOutcome) => {
        of.attempts.delete(id)
        clearTimeout(timer)
        signal.removeEventListener('abort', stop)
        resolve(outcome)
      }
      of.attempts.set(id, { settle })
      signal.addEventListener('abort', stop, { once: true })
      send(of, { kind: 'deliver', id, ...what })
    })
  }
}

/** One run of the process. */
interface Run {
  /** Undefined: the process could not be started. */
  toDriver: Duplex | undefined
  isStarting: boolean
  /** Looks since the last sign of life. */
  missed: number
  /** The attempts that are under way: one for each lane. */
  attempts: Map<number, { settle: (outcome: AttemptOutcome) => void }>
  /** Why the driver did not close. */
  problem: string | null
  /** Ends the process, and those that it has started. */
  kill(): void
  /** The same, for this reason. */
  end(reason: DriverEnd, why: string, stack?: string): void
  /** Resolves when the process has ended. */
  over: Promise<{ reason: DriverEnd; why: string; stack: string | undefined; problem: string | null }>
}

/** Starts the process, and ends it when it breaks a limit. */
function startRun(
  { log }: Pick<Parameters<typeof createDriverProcess>[0], 'log'>,
  limits: DriverLimits,
  heard: (message: FromDriver) => void,
): Run {
  const argv = [...nodeOptions(limits.heapMb), program, String(process.pid)]
  // With a group of its own, those that the driver has started can be ended with it.
  const child = spawn(process.execPath, argv, {
    env: startVariables(),
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
  })
  const [fromDriver, toDriver] = [fds.toHub, fds.toDriver].map((fd) => socketOf(child, fd))
  // Errors are ignored: the process is ending, and `over` tells.
  for (const socket of [fromDriver, toDriver]) socket?.on('error', () => {})
  let messages = 0
  if (fromDriver) {
    const hear = (message: FromDriver) => {
      if (++messages > messagesPerSecond) fromDriver.pause()
      heard(message)
    }
    readFromDriver(fromDriver, hear, () =>
      run.end('error', "it wrote to the hub's channel what is no message of a driver"),
    )
  }
  const output = createDriverOutput([child.stdout, child.stderr], log)
  let cause: { reason: DriverEnd; why: string; stack: string | undefined } | undefined
  const starting = setTimeout(
    () => run.isStarting && run.end('load', `it was not ready within ${limits.startMs / 1000} s`),
    limits.startMs,
  )
  const looking = setInterval(() => {
    output.nextSecond()
    messages = 0
    if (fromDriver?.isPaused()) fromDriver.resume()
    // Counts looks instead of time: after a pause of the whole machine there is one look.
    if (run.missed++ >= limits.missedLooks)
      run.end('hung', `it blocked its event loop for ${(limits.missedLooks * lookMs) / 1000} s`)
  }, lookMs)
  const measuring = setInterval(async () => {
    const megabytes = await memoryOf(child.pid)
    if (megabytes > limits.memoryMb) run.end('memory', `it used more than ${limits.memoryMb} MB of memory`)
  }, memoryLookMs)

  const run: Run = {
    toDriver,
    isStarting: true,
    missed: 0,
    attempts: new Map(),
    problem: null,
    kill: () => killGroup(child),
    end(reason, why, stack) {
      cause ??= { reason, why, stack }
      killGroup(child)
    },
    over: new Promise((resolve) => {
      const over = (why: string) => {
        clearTimeout(starting)
        clearInterval(looking)
        clearInterval(measuring)
        output.end()
        fromDriver?.destroy()
        toDriver?.destroy()
        const { problem } = run
        if (cause) resolve({ ...cause, problem })
        else if (output.saidOutOfMemory())
          resolve({
            reason: 'memory',
            why: `it used more than ${limits.heapMb} MB of heap`,
            stack: undefined,
            problem,
          })
        else resolve({ reason: 'exit', why, stack: undefined, problem })
      }
      child.on('error', (error) => {
        // The process could not be started.
        if (child.pid === undefined) over(`its process cannot be started: ${error.message}`)
      })
      child.once('exit', (code, signal) => {
        killGroup(child)
        const why =
          signal === null ? `its process ended with exit code ${code}` : `its process was ended by ${signal}`
        // The socket and the output have the reason, and may end later. What the driver has started can keep them open.
        const inTime = startDeadline(restMs, () => over(why))
        child.once('close', () => {
          inTime()
          over(why)
        })
      })
    }),
  }
  return run
}

function send({ toDriver }: Pick<Run, 'toDriver'>, message: ToDriver): void {
  if (toDriver?.writable) toDriver.write(`${JSON.stringify(message)}\n`)
}

/** Undefined: the process could not be started. */
function socketOf({ stdio }: ChildProcess, fd: number): Duplex | undefined {
  const socket = stdio.at(fd)
  return socket instanceof Duplex ? socket : undefined
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All have ended.
  }
}

/** The program of the process: TypeScript where the hub runs from its sources. */
const program = fileURLToPath(
  new URL(`./driver-program${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)

/** The variables that Node reads at its start. The program removes them before it loads the driver. */
function startVariables(): NodeJS.ProcessEnv {
  const isRead = /^(NODE_(?!CHANNEL|UNIQUE_ID).*|SSL_CERT_(FILE|DIR)|TZ|https?_proxy|no_proxy)$/i
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => isRead.test(name)))
}

/** Memory of a process, megabytes. 0: the process has ended, or the system does not say (it is no Linux). */
async function memoryOf(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024
}
