import { isRecord } from '../../client/kind.ts'
import { readRetryAfter } from '../../client/retry-after.ts'
import { setClock } from './clock.ts'

/** An answer of the hub to a page. `status` 0: the hub did not answer. */
export interface HubAnswer {
  status: number
  /** The JSON object of the answer. Empty: there is none. */
  body: Record<string, unknown>
  /** The JSON of the answer, whatever it is. */
  json: unknown
  /** Seconds after which the page may ask again, if the hub says so: from 1 on. */
  retryAfter: number | undefined
}

/** How long a page waits for an answer, milliseconds. A hung node or a dead line must be noticed. */
const usualPatienceMs = 15_000

/** Sends a request to the hub. Never rejects. */
export async function ask(
  method: string,
  path: string,
  {
    body,
    token,
    patienceMs = usualPatienceMs,
  }: { body?: unknown; token?: string | undefined; patienceMs?: number | undefined } = {},
): Promise<HubAnswer> {
  const askedAt = Date.now()
  try {
    const response = await fetch(path, {
      method,
      headers: {
        accept: 'application/json',
        'x-hub-page': '1',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      signal: AbortSignal.timeout(patienceMs),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    setClock(response, askedAt)
    const answer: unknown = await response.json()
    return {
      status: response.status,
      body: isRecord(answer) ? answer : {},
      json: answer,
      retryAfter: readRetryAfter(response.headers.get('retry-after')),
    }
  } catch (error) {
    const isLate = error instanceof DOMException && error.name === 'TimeoutError'
    const message = isLate
      ? `The hub did not answer within ${patienceMs / 1000} s.`
      : 'The hub cannot be reached.'
    return { status: 0, body: { message }, json: undefined, retryAfter: undefined }
  }
}

/** What went wrong, in the words of the hub. Names the field of the form that is wrong. */
export function problemOf({ status, body }: HubAnswer): string {
  const [first] = Array.isArray(body.errors) ? body.errors.filter(isRecord) : []
  const reason = String(first?.message ?? body.message ?? `The hub answered ${status}.`)
  // Only errors of the schema are about one field, and do not name it in their message.
  const isOfSchema = String(first?.errorCode).endsWith('.openapi.validation')
  const [, field] = (isOfSchema && /^\.body\.(.+)/.exec(String(first?.path))) || []
  return field === undefined ? reason : `${field}: ${reason}`
}
