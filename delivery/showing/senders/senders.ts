import type { CurrentCa } from '../../../config/ca-files.ts'
import { startDeadline } from '../../../store/deadline.ts'
import { reasonOf } from '../../../telemetry/reason.ts'
import {
  type HttpRequest,
  type Judgement,
  judgeByStatus,
  type Output,
  type Request,
  type ServerAnswer,
} from '../../outputs/output.ts'
import { createFileProcess } from './file-process.ts'
import { createHttpSender } from './http.ts'
import { sendOverTcp } from './lines.ts'

export type Senders = ReturnType<typeof createSenders>

/** One attempt, as operators see it. */
export interface OutputAttempt extends Judgement {
  /** What was sent, without secrets. */
  request: string
  /** What came back. Null: nothing that can be read. */
  answer: string | null
  status: number | null
}

/** Longest time of one attempt, milliseconds. */
const attemptMs = 20_000
/** So much of an answer is shown, characters. */
const shownAnswer = 500
/** Shorter values, such as `v1`, are no secrets, and stand in many words. */
const shortestSecret = 4

/** Sends what outputs want sent. */
export function createSenders(parts: {
  ca: CurrentCa | undefined
  version: string
  deadlineMs?: number | undefined
}) {
  const { ca, version, deadlineMs = attemptMs } = parts
  const ask = createHttpSender({ ca, userAgent: `now-playing-hub/${version}` })
  const files = createFileProcess()

  return {
    /** Makes one attempt. Never rejects, and ends at the deadline, or when `signal` aborts. */
    async send(request: Request, judge: Output['judge'], signal: AbortSignal): Promise<OutputAttempt> {
      const shown = shownRequest(request)
      try {
        if ('url' in request) {
          const answer = await inTime('no answer', signal, (ending) => ask(request, ending))
          const { status, text } = answer
          const { result, reason } = judge?.(answer) ?? judgeByStatus(answer)
          const shownText = (said: string) => withoutSecrets(said, request)
          return {
            result,
            reason: reason && shownText(reason),
            request: shown,
            status,
            answer: shownText(text).slice(0, shownAnswer),
          }
        }
        if ('file' in request)
          await inTime('the folder did not answer', signal, (ending) => files.replace(request, ending))
        else await inTime('not taken', signal, (ending) => sendOverTcp(request, ending))
        return { result: 'acknowledged', reason: null, request: shown, status: null, answer: null }
      } catch (error) {
        return { result: 'failed', reason: reasonOf(error), request: shown, status: null, answer: null }
      }
    },

    /** Asks without effect. Undefined: there was no answer. */
    look(request: HttpRequest, signal: AbortSignal): Promise<ServerAnswer | undefined> {
      return inTime('no answer', signal, (ending) => ask(request, ending)).catch(() => undefined)
    },

    close: files.close,
  }

  /** Does work whose signal aborts at the deadline, with the reason `late`, and when the hub stops. */
  async function inTime<T>(
    late: string,
    stopping: AbortSignal,
    work: (ending: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (stopping.aborted) throw new Error('the hub is stopping')
    const ending = new AbortController()
    const stop = () => ending.abort(new Error('the hub is stopping'))
    stopping.addEventListener('abort', stop, { once: true })
    const endWait = startDeadline(deadlineMs, () =>
      ending.abort(new Error(`${late} within ${deadlineMs / 1000} s`)),
    )
    try {
      return await work(ending.signal)
    } finally {
      endWait()
      stopping.removeEventListener('abort', stop)
    }
  }
}

/**
 * Masks the headers and secrets of a request where its answer repeats them. If a header names a scheme before its secret
 * (`Basic …`), an answer may repeat the secret alone.
 */
function withoutSecrets(said: string, { headers = {}, secrets }: HttpRequest): string {
  const sent = Object.values(headers).flatMap((value) => [value, ...value.split(' ').slice(1)])
  return [...sent, ...secrets]
    .filter(({ length }) => length >= shortestSecret)
    .sort((a, b) => b.length - a.length)
    .reduce((text, secret) => text.replaceAll(secret, '***'), said)
}

function shownRequest(request: Request): string {
  if ('url' in request) {
    const { method, shown } = request
    return [`${method} ${shown.url}`, ...(shown.body === undefined ? [] : ['', shown.body])].join('\n')
  }
  if ('file' in request) return `${request.file}\n\n${request.content}`
  return `${request.host}:${request.port}\n\n${request.text}`
}
