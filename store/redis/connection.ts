import { setTimeout as delay } from 'node:timers/promises'
import { withCaHint } from '../../config/ca-files.ts'
import { startDeadline } from '../deadline.ts'
import { Fenced } from '../store.ts'
import type { Argument, Send } from './script.ts'

/** What this file uses of an ioredis client, for a server or a cluster. */
export interface RedisClient {
  callBuffer(command: string, args: Argument[]): Promise<unknown>
  disconnect(reconnect?: boolean): void
  on(event: string, listener: (error: unknown) => void): unknown
  /** Notes that the server does its work. Later pauses between attempts to connect begin short again. */
  worked(): void
}

export type Connection = ReturnType<typeof createConnection>

/**
 * Called when the connection is lost, with the reason, and when it is back. It is back when Redis has taken a write: a
 * server that became a replica answers, and takes none.
 */
export type OnConnection = (state: { up: true } | { up: false; reason: string }) => void

/**
 * A connection that reconnects by itself, also when waiting commands get no answer for `quietMs`. `ask` rejects if
 * Redis does not answer within `timeoutMs`. Errors of `ask` never hold the command, which can have a password.
 */
export function createConnection(client: RedisClient, limits: { timeoutMs: number; quietMs: number }) {
  const { timeoutMs, quietMs } = limits
  const waiting = new Set<() => void>()
  const listeners: OnConnection[] = []
  let problem = ''
  let isReady = false
  /** Redis refuses this client, as it would at each further attempt. Undefined once there was a connection. */
  let refused: RedisRefusal | undefined
  let wasReady = false
  /** What the listeners know. */
  let isUp = true
  /** Redis has refused a write as a replica, and has taken none since. */
  let isReadOnly = false
  let upSince = Number.POSITIVE_INFINITY
  let isClosed = false
  let inFlight = 0
  let endWatch: (() => void) | undefined
  let endHandshake = () => {}

  client.on('error', note)
  client.on('node error', note)
  client.on('connect', () => {
    endHandshake()
    endHandshake = startDeadline(timeoutMs, replace)
  })
  client.on('ready', () => {
    endHandshake()
    problem = ''
    isReady = true
    wasReady = true
    refused = undefined
    upSince = performance.now()
    for (const proceed of waiting) proceed()
  })
  client.on('close', () => {
    endHandshake()
    isReady = false
    if (upSince === Number.POSITIVE_INFINITY || isClosed) return
    upSince = Number.POSITIVE_INFINITY
    if (!isUp) return
    isUp = false
    for (const tell of listeners) tell({ up: false, reason: problem || 'the connection was closed' })
  })

  return {
    onConnection: (listener: OnConnection) => listeners.push(listener),
    /** When the connection was made, by `performance.now()`. Infinity while there is none. */
    upSince: (): number => upSince,
    /** Sends a command once. Rejects at once while there is no connection. */
    send,
    /** Resolves when there is a connection. Rejects if there is none within `timeoutMs`. */
    ready: () =>
      inTime(timeoutMs, (deadline) =>
        ready(deadline).catch((error: unknown) => {
          throw deadline.isOver ? noAnswer(timeoutMs, problem) : error
        }),
      ),

    /**
     * Calls `attempt`. After an error that may pass by itself, calls `attempt` again. Rejects after any other error, or
     * if Redis does not answer in time. The caller must make sure that a repetition does no harm: Redis may have
     * carried out the earlier attempt.
     */
    ask,
    /** Like `ask`, for an attempt that writes. */
    async write<T>(attempt: (send: Send) => Promise<T>): Promise<T> {
      const answer = await ask(attempt)
      isReadOnly = false
      client.worked()
      if (!isUp && !isClosed) {
        isUp = true
        for (const tell of listeners) tell({ up: true })
      }
      return answer
    },
    noAnswer: () => noAnswer(timeoutMs, problem),

    close(): void {
      isClosed = true
      endHandshake()
      client.disconnect()
      for (const proceed of waiting) proceed()
    },
  }

  async function ask<T>(attempt: (send: Send) => Promise<T>): Promise<T> {
    return inTime(timeoutMs, async (deadline) => {
      const sendInTime: Send = (command, args) =>
        deadline.isOver ? Promise.reject(tooLate) : send(command, args)
      for (;;) {
        try {
          await ready(deadline)
          return await Promise.race([attempt(sendInTime), deadline.over])
        } catch (error) {
          if (deadline.isOver) throw noAnswer(timeoutMs, problem)
          if (isRefused(error)) throw error
          if (!passesByItself(error)) throw refusal(error)
          note(error)
          await delay(retryMs)
        }
      }
    })
  }

  function note(error: unknown): void {
    problem = withCaHint(textOf(error), 'redis')
    if (/\bREADONLY\b/.test(problem)) isReadOnly = true
    // Later, the same may pass: the node knew the password once.
    refused = wasReady ? undefined : refusedBy(problem)
    if (refused) for (const proceed of waiting) proceed()
  }

  function replace(): void {
    note(new Error('nothing arrived on the connection'))
    isReady = false
    if (!isClosed) client.disconnect(true)
  }

  async function ready({ over }: Deadline): Promise<void> {
    if (isReady) return
    if (refused) throw refused
    let proceed = () => {}
    const connected = new Promise<void>((resolve) => {
      proceed = resolve
    })
    waiting.add(proceed)
    try {
      await Promise.race([connected, over])
    } finally {
      waiting.delete(proceed)
    }
    if (isClosed) throw new Error('the connection is closed')
    if (refused) throw refused
  }

  async function send(command: string, args: readonly Argument[]): Promise<unknown> {
    inFlight++
    endWatch ??= startDeadline(quietMs, replace)
    try {
      const answer = await client.callBuffer(command, [...args])
      if (!isReadOnly) client.worked()
      return answer
    } finally {
      inFlight--
      endWatch?.()
      endWatch = inFlight > 0 ? startDeadline(quietMs, replace) : undefined
    }
  }
}

/** Pause between two attempts while the problem may pass by itself, milliseconds. */
const retryMs = 20

/** `ask` and `ready` replace this error by an error with the reason. */
const tooLate = new Error('too late')

interface Deadline {
  isOver: boolean
  /** Rejects when the deadline has passed. */
  over: Promise<never>
}

/** Calls `work` with a deadline in `ms` milliseconds, which `work` must check itself. */
async function inTime<T>(ms: number, work: (deadline: Deadline) => Promise<T>): Promise<T> {
  let giveUp = () => {}
  const over = new Promise<never>((_, reject) => {
    giveUp = () => reject(tooLate)
  })
  over.catch(() => {})
  const deadline = { isOver: false, over }
  const end = startDeadline(ms, () => {
    deadline.isOver = true
    giveUp()
  })
  try {
    return await work(deadline)
  } finally {
    end()
  }
}

function passesByItself(error: unknown): boolean {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return true
  return /\b(LOADING|READONLY|WAIT cannot be used|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|BUSY|UNBLOCKED)\b/.test(
    error.message,
  )
}

/** Redis has answered, and takes no connection of this client. `code`: what it should do instead. */
type RedisRefusal = Error & { code: string }

const refusals: readonly [problem: RegExp, expected: string][] = [
  [/\b(WRONGPASS|NOAUTH)\b|invalid password/, 'takes this user and password'],
  [/No such master/, 'its Sentinels know by this name'],
  [/may name a CA to trust|altnames|certificate has expired/, 'has a certificate that can be trusted'],
]

function refusedBy(problem: string): RedisRefusal | undefined {
  const [, code] = refusals.find(([pattern]) => pattern.test(problem)) ?? []
  return code === undefined
    ? undefined
    : Object.assign(new Error(`Redis answered, and refused: ${problem}`), { code })
}

/** Whether an error says that Redis answered, and takes no connection of this client. */
export function isRefused(error: unknown): error is RedisRefusal {
  return error instanceof Error && 'code' in error && refusals.some(([, code]) => code === error.code)
}

/** Whether an error says that Redis refused to write because its memory is full. */
export function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && error.message === outOfMemory
}

const outOfMemory = 'Redis is out of memory (maxmemory is reached)'

/** Whether an error says that Redis has lost data that this node knows. */
export function isLoss(error: unknown): boolean {
  return error instanceof Error && error.message === lost
}

export const lost = 'Redis has lost what this node knows: the node must start again'

const partial =
  'Redis has deleted a part of the store: stop all nodes, and restore a backup (see maxmemory-policy)'

function refusal(error: unknown): Error {
  const text = textOf(error)
  if (/\bLOST\b/.test(text)) return new Error(lost)
  if (/\bPARTIAL\b/.test(text)) return new Error(partial)
  if (/\bFENCED\b/.test(text)) return new Fenced()
  return new Error(/\bOOM\b/.test(text) ? outOfMemory : `Redis refused: ${text}`)
}

function noAnswer(timeoutMs: number, problem: string): Error {
  const message = `Redis did not answer within ${timeoutMs} ms${problem && ` (${problem})`}`
  return Object.assign(new Error(message), { code: 'ETIMEDOUT' })
}

/** Whether an error says that Redis did not answer in time. */
export function isNoAnswer(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ETIMEDOUT'
}

/** What an error says, without the arguments of commands. */
export function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (/^Stream isn't writeable|^Reached the max retries/.test(error.message)) return 'the connection was lost'
  // If several addresses were tried, the error of the first one stands for all.
  const [first] = error instanceof AggregateError ? error.errors : []
  // If Redis does not know a command, its error repeats the arguments.
  const { message } = first instanceof Error ? first : error
  return message.replace(/,? with args beginning with:.*/s, '')
}
