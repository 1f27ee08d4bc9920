import { setTimeout as delay } from 'node:timers/promises'
import { Fenced } from '../store.ts'
import type { Argument, Send } from './script.ts'

/** What this file needs of a client of ioredis, be it of one server or of a cluster. */
export interface Client {
  callBuffer(command: string, args: Argument[]): Promise<unknown>
  disconnect(reconnect?: boolean): void
  on(event: string, listener: (error: unknown) => void): unknown
}

export type Connection = ReturnType<typeof createConnection>

/** Told when the connection is lost, with the reason, and when it is back. */
export type OnConnection = (state: { up: true } | { up: false; reason: string }) => void

/**
 * A connection that comes back by itself, and on which nothing waits without end: a command that is not
 * answered in time rejects, and a connection on which nothing arrives for `quietMs` is replaced.
 * Errors are made here and hold texts only: those of ioredis carry the command, which may be a password.
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
  let watchdog: NodeJS.Timeout | undefined
  let handshake: NodeJS.Timeout | undefined

  client.on('error', note)
  client.on('node error', note)
  client.on('connect', () => {
    clearTimeout(handshake)
    handshake = setTimeout(replace, timeoutMs)
  })
  client.on('ready', () => {
    clearTimeout(handshake)
    problem = ''
    isReady = true
    isUp = true
    for (const proceed of waiting) proceed()
    for (const tell of listeners) tell({ up: true })
  })
  client.on('close', () => {
    clearTimeout(handshake)
    isReady = false
    if (!isUp || isClosed) return
    isUp = false
    for (const tell of listeners) tell({ up: false, reason: problem || 'the connection was closed' })
  })

  return {
    /** The moment until which a command that is given now may take. */
    deadline: () => performance.now() + timeoutMs,
    onConnection: (listener: OnConnection) => listeners.push(listener),
    /** One command, once. Rejects at once while there is no connection. */
    send,
    ready,

    /**
     * Attempts until there is an answer, as long as what stands in the way may pass by itself. An attempt is
     * repeated although the one before may have arrived: it must not matter.
     */
    async ask<T>(attempt: (send: Send) => Promise<T>, until: number): Promise<T> {
      const sendInTime: Send = (command, args) =>
        performance.now() < until ? send(command, args) : Promise.reject(tooLate)
      for (;;) {
        try {
          await ready(until)
          return await beforeDeadline(attempt(sendInTime), until)
        } catch (error) {
          if (error === tooLate || performance.now() >= until) throw noAnswer(timeoutMs, problem)
          if (!passesByItself(error)) throw refusal(error)
          note(error)
          await delay(Math.min(retryMs, until - performance.now()))
        }
      }
    },

    /** The reason why there is no answer, for a message. */
    noAnswer: () => noAnswer(timeoutMs, problem),

    close(): void {
      isClosed = true
      clearTimeout(handshake)
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

  async function ready(until: number): Promise<void> {
    if (isReady) return
    let proceed = () => {}
    const connected = new Promise<void>((resolve) => {
      proceed = resolve
    })
    waiting.add(proceed)
    try {
      await beforeDeadline(connected, until)
    } finally {
      waiting.delete(proceed)
    }
    if (isClosed) throw new Error('the connection is closed')
  }

  async function send(command: string, args: readonly Argument[]): Promise<unknown> {
    inFlight++
    watchdog ??= setTimeout(replace, quietMs)
    try {
      return await client.callBuffer(command, [...args])
    } finally {
      inFlight--
      clearTimeout(watchdog)
      watchdog = inFlight > 0 ? setTimeout(replace, quietMs) : undefined
    }
  }
}

/** Between two attempts while Redis is there and does not want to. */
const retryMs = 20

/** The deadline has passed. */
const tooLate = new Error('too late')

async function beforeDeadline<T>(promise: Promise<T>, until: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const expired = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooLate), Math.max(0, Math.ceil(until - performance.now())))
  })
  try {
    return await Promise.race([promise, expired])
  } finally {
    clearTimeout(timer)
  }
}

/** Whether it is the connection, or a Redis that starts, fails over or moves. */
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

function refusal(error: unknown): Error {
  const text = textOf(error)
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
  // Of several addresses that were tried, the first speaks for all.
  const [first] = error instanceof AggregateError ? error.errors : []
  // An unknown command is answered with its arguments.
  return textWithoutArguments(first instanceof Error ? first.message : error.message)
}

function textWithoutArguments(text: string): string {
  return text.replace(/,? with args beginning with:.*/s, '')
}
