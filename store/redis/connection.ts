import { setTimeout as delay } from 'node:timers/promises'
import { Fenced } from '../store.ts'
import { startDeadline } from './deadline.ts'
import type { Argument, Send } from './script.ts'

/** The part of a client of ioredis that this file needs, be it of one server or of a cluster. */
export interface Client {
  callBuffer(command: string, args: Argument[]): Promise<unknown>
  disconnect(reconnect?: boolean): void
  on(event: string, listener: (error: unknown) => void): unknown
}

export type Connection = ReturnType<typeof createConnection>

/** Called when the connection is lost, with the reason, and when it is back. */
export type OnConnection = (state: { up: true } | { up: false; reason: string }) => void

/**
 * A connection that reconnects by itself, and on which no command waits for ever. A command that is not answered in
 * time rejects, and a connection on which nothing arrives for `quietMs` is replaced.
 * All errors are made here and hold only texts, because errors of ioredis carry the command, which may hold a password.
 */
export function createConnection(client: Client, limits: { timeoutMs: number; quietMs: number }) {
  const { timeoutMs, quietMs } = limits
  const waiting = new Set<() => void>()
  const listeners: OnConnection[] = []
  let problem = ''
  let isReady = false
  let isUp = false
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
    isUp = true
    for (const proceed of waiting) proceed()
    for (const tell of listeners) tell({ up: true })
  })
  client.on('close', () => {
    endHandshake()
    isReady = false
    if (!isUp || isClosed) return
    isUp = false
    for (const tell of listeners) tell({ up: false, reason: problem || 'the connection was closed' })
  })

  return {
    onConnection: (listener: OnConnection) => listeners.push(listener),
    /** Sends a command once. Rejects at once while there is no connection. */
    send,
    /** Resolves when there is a connection, rejects when there is none in time. */
    ready: () => inTime(timeoutMs, ready),

    /**
     * Repeats `attempt` until there is an answer, as long as the problem may pass by itself. Repeating must do no harm,
     * because Redis may have carried out an attempt whose answer was lost.
     */
    ask: <T>(attempt: (send: Send) => Promise<T>): Promise<T> =>
      inTime(timeoutMs, async (deadline) => {
        const sendInTime: Send = (command, args) =>
          deadline.isOver ? Promise.reject(tooLate) : send(command, args)
        for (;;) {
          try {
            await ready(deadline)
            return await Promise.race([attempt(sendInTime), deadline.over])
          } catch (error) {
            if (deadline.isOver) throw noAnswer(timeoutMs, problem)
            if (!passesByItself(error)) throw refusal(error)
            note(error)
            await delay(retryMs)
          }
        }
      }),

    /** The reason why there is no answer, for a message. */
    noAnswer: () => noAnswer(timeoutMs, problem),

    close(): void {
      isClosed = true
      endHandshake()
      client.disconnect()
      for (const proceed of waiting) proceed()
    },
  }

  function note(error: unknown): void {
    problem = textOf(error)
  }

  function replace(): void {
    note(new Error('nothing arrived on the connection'))
    isReady = false
    if (!isClosed) client.disconnect(true)
  }

  async function ready({ over }: Deadline): Promise<void> {
    if (isReady) return
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
  }

  async function send(command: string, args: readonly Argument[]): Promise<unknown> {
    inFlight++
    endWatch ??= startDeadline(quietMs, replace)
    try {
      return await client.callBuffer(command, [...args])
    } finally {
      inFlight--
      endWatch?.()
      endWatch = inFlight > 0 ? startDeadline(quietMs, replace) : undefined
    }
  }
}

/** Pause between two attempts while the problem may pass by itself, milliseconds. */
const retryMs = 20

/** The deadline has passed. */
const tooLate = new Error('too late')

interface Deadline {
  isOver: boolean
  /** Rejects when the deadline has passed. */
  over: Promise<never>
}

/** Does work with a deadline after `ms` milliseconds. The work itself must look at the deadline. */
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

/** Whether an error passes by itself: a lost connection, or a Redis that starts, fails over or moves its slots. */
function passesByItself(error: unknown): boolean {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return true
  return /\b(LOADING|READONLY|WAIT cannot be used|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|BUSY|UNBLOCKED)\b/.test(
    error.message,
  )
}

/** Whether Redis refused to write because its memory is full. */
export function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && error.message === outOfMemory
}

const outOfMemory = 'Redis is out of memory (maxmemory is reached)'

/** Whether Redis has lost data that this node knows, by a failover or a restored backup. */
export function isLoss(error: unknown): boolean {
  return error instanceof Error && error.message === lost
}

export const lost = 'Redis has lost what this node knows: the node must start again'

function refusal(error: unknown): Error {
  const text = textOf(error)
  if (/\bLOST\b/.test(text)) return new Error(lost)
  if (/\bFENCED\b/.test(text)) return new Fenced()
  return new Error(/\bOOM\b/.test(text) ? outOfMemory : `Redis refused: ${text}`)
}

function noAnswer(timeoutMs: number, problem: string): Error {
  const message = `Redis did not answer within ${timeoutMs} ms${problem && ` (${problem})`}`
  return Object.assign(new Error(message), { code: 'ETIMEDOUT' })
}

/** Whether there was no answer in time. */
export function isNoAnswer(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ETIMEDOUT'
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (/^Stream isn't writeable|^Reached the max retries/.test(error.message)) return 'the connection was lost'
  // If several addresses were tried, the error of the first one stands for all.
  const [first] = error instanceof AggregateError ? error.errors : []
  // Redis repeats the arguments of a command that it does not know: they are cut off.
  return textWithoutArguments(first instanceof Error ? first.message : error.message)
}

function textWithoutArguments(text: string): string {
  return text.replace(/,? with args beginning with:.*/s, '')
}
