import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { codeOf, reasonOf } from '../telemetry/reason.ts'

/** Why a command has no result: `code` for programs, `message` for people. */
export interface CallFailure {
  code: string
  message: string
}

/** What became of a command. */
export type CallResult = { result: unknown } | { error: CallFailure }

/**
 * Longest wait for an answer, milliseconds, and for its next bytes where they must keep coming. Only a refresh of the feed takes
 * long.
 */
const timeoutMs = 60_000

/** Sends a command over the admin socket. Returns the result, or why there is none. */
export async function call(
  socketPath: string,
  command: string,
  args: Record<string, unknown>,
  who: string,
): Promise<CallResult> {
  try {
    const text = await post(socketPath, `/${command}`, JSON.stringify({ args, who }))
    return readAnswer(text)
  } catch (error) {
    return { error: describe(socketPath, error) }
  }
}

/**
 * Sends a command whose answer comes line by line. Resolves with the reason why the lines ended. The first line may take any
 * time, the beginning of the answer only `patienceMs`.
 */
export async function readLines(
  socketPath: string,
  command: string,
  { args, who, print }: { args: Record<string, unknown>; who: string; print: (value: unknown) => void },
  patienceMs = timeoutMs,
): Promise<CallFailure> {
  try {
    const response = await ask(socketPath, command, { args, who }, { patienceMs })
    for await (const line of createInterface({ input: response })) {
      const value: unknown = JSON.parse(line)
      if (response.statusCode === 200) print(value)
      else return failureOf(value)
    }
    return { code: 'node.unreachable', message: `the node on ${socketPath} has closed` }
  } catch (error) {
    return describe(socketPath, error)
  }
}

/** Sends a command, and resolves with the stream of the answer. `signal` ends the request, `close` the answer. */
export async function openLines(
  socketPath: string,
  command: string,
  who: string,
  signal: AbortSignal,
  patienceMs = timeoutMs,
): Promise<{ stream: IncomingMessage; close: () => void } | { error: CallFailure }> {
  try {
    const stream = await ask(socketPath, command, { args: {}, who }, { patienceMs, signal })
    stream.setTimeout(patienceMs, () => stream.destroy(tooLate(patienceMs)))
    if (stream.statusCode === 200) return { stream, close: () => void stream.destroy() }
    return { error: failureOf(JSON.parse(await text(stream))) }
  } catch (error) {
    return { error: describe(socketPath, error) }
  }
}

/** Resolves when the answer begins. */
function ask(
  socketPath: string,
  command: string,
  call: object,
  { patienceMs, signal }: { patienceMs: number; signal?: AbortSignal },
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const sending = request(
      { socketPath, path: `/${command}`, method: 'POST', headers, agent: false, ...(signal && { signal }) },
      (response) => {
        sending.setTimeout(0)
        resolve(response)
      },
    )
    sending.setTimeout(patienceMs, () => sending.destroy(tooLate(patienceMs)))
    sending.on('error', reject)
    sending.end(JSON.stringify(call))
  })
}

function failureOf(answer: unknown): CallFailure {
  const error = Object(answer).error
  return isFailure(error) ? error : { code: 'internal', message: 'its answer is not one of a node' }
}

/** Where a node of this environment listens for commands (design.md §4). */
export function defaultSocket(env: NodeJS.ProcessEnv): string {
  return join(env.HUB_DATA_DIR || './data', 'admin.sock')
}

function post(socketPath: string, path: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      // `hubctl` must close the connection. If the node closed it, a large request could fail with EPIPE.
      connection: 'keep-alive',
    }
    const sending = request({ socketPath, path, method: 'POST', headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        resolve(Buffer.concat(chunks).toString())
        sending.destroy()
      })
      response.on('error', (error) => reject(new Unanswered(error.message)))
    })
    sending.setTimeout(timeoutMs, () => sending.destroy(tooLate(timeoutMs)))
    sending.on('error', (error) => reject(sending.writableFinished ? new Unanswered(error.message) : error))
    sending.end(body)
  })
}

function tooLate(patienceMs: number): Error {
  return new Error(`no answer within ${patienceMs / 1000} s`)
}

/** The whole request was sent: the node may have carried it out. */
export class Unanswered extends Error {
  get failure(): CallFailure {
    return {
      code: 'node.unanswered',
      message: `the request was sent, but there is no answer: ${this.message}`,
    }
  }
}

function readAnswer(text: string): CallResult {
  const answer: unknown = JSON.parse(text)
  if (typeof answer === 'object' && answer !== null) {
    if ('result' in answer) return { result: answer.result }
    if ('error' in answer && isFailure(answer.error)) {
      return { error: { code: answer.error.code, message: answer.error.message } }
    }
  }
  throw new Error('its answer is not one of a node')
}

function isFailure(value: unknown): value is CallFailure {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof Reflect.get(value, 'code') === 'string' &&
    typeof Reflect.get(value, 'message') === 'string'
  )
}

function describe(socketPath: string, error: unknown): CallFailure {
  if (error instanceof Unanswered) return error.failure
  const code = codeOf(error)
  if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    return {
      code: 'node.unreachable',
      message: `no node is running on ${socketPath} (another one: --socket PATH, or HUB_DATA_DIR as for the node)`,
    }
  }
  if (code === 'EACCES' || code === 'EPERM') {
    return {
      code: 'node.forbidden',
      message: `you may not open ${socketPath}: only the user of the node may`,
    }
  }
  return {
    code: 'node.unreachable',
    message: `the node on ${socketPath} cannot be asked: ${reasonOf(error)}`,
  }
}
