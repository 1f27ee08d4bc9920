import { isRecord } from '../../client/kind.ts'
import { readRetryAfter } from '../../client/retry-after.ts'
import { tell } from './tell.ts'

/** What a hub says of a livestream. */
export interface FoundLivestream {
  /** Its name. Undefined: the page cannot read it. */
  title?: string
  /** It is not there, or not for everybody. */
  isAbsent?: boolean
  /** Not to ask again before, milliseconds. */
  pauseMs: number
}

const answerWithinMs = 10_000
/** What is absent may come: the hub reads its feed again. Milliseconds. */
const absentMs = 300_000

/** Asks a hub for a livestream. An `EventSource` does not tell why it gets no stream. */
export async function findLivestream(hub: string, id: string): Promise<FoundLivestream> {
  try {
    const { status, headers, body } = await ask(`${hub}/livestreams/${encodeURIComponent(id)}/now`)
    if (isRecord(body) && body.id === id) return { title: String(body.title ?? ''), pauseMs: 0 }
    if (status === 401) tell(`hub: ${hub} has no public page`)
    else if (status === 404 || status === 200) tell(`livestream: ${hub} has none with the id ${id}`)
    else return { pauseMs: 1000 * (readRetryAfter(headers.get('retry-after')) ?? 0) }
    return { isAbsent: true, pauseMs: absentMs }
  } catch {
    return { pauseMs: 0 } // no network, or an answer that is no JSON
  }
}

async function ask(url: string) {
  const answer = await fetch(url, { credentials: 'omit', signal: AbortSignal.timeout(answerWithinMs) })
  const { status, headers } = answer
  return { status, headers, body: status === 200 ? ((await answer.json()) as unknown) : undefined }
}
