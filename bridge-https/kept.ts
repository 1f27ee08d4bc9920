import { createHash, type Hash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Answer } from './answer.ts'
import type { Call } from './routes/route.ts'

/** A document that is the same for everybody: kept as bytes, and sent to who does not have it yet. */
export interface Kept {
  text: Buffer
  /** Changes with the text (RFC 9110 §8.8.3). */
  tag: string
}

export function keep(document: object): Kept {
  return keepText(JSON.stringify(document))
}

/** Keeps JSON text. */
export function keepText(json: string): Kept {
  const text = Buffer.from(json)
  return { text, tag: tagOf(createHash('sha256').update(text)) }
}

/** Returns a function that returns a document. Calls `make` again when the result of `dependsOn` has changed. */
export function keptDocument(dependsOn: () => string, make: () => object): () => Kept {
  let kept: { for: string; document: Kept } | undefined
  return () => {
    const current = dependsOn()
    if (kept?.for !== current) kept = { for: current, document: keep(make()) }
    return kept.document
  }
}

/** Keeps a long text of which these are the parts. Takes one turn of the event loop for each. */
export async function keepParts(parts: readonly string[]): Promise<Kept> {
  const hash = createHash('sha256')
  const chunks: Buffer[] = []
  for (const part of parts) {
    const chunk = Buffer.from(part)
    hash.update(chunk)
    chunks.push(chunk)
    await nextTurn()
  }
  return { text: Buffer.concat(chunks), tag: tagOf(hash) }
}

function tagOf(hash: Hash): string {
  return `"${hash.digest('base64url')}"`
}

/** The document, or 304 if the header If-None-Match says that the client has it. */
export function answerKept({ text, tag }: Kept, header: Call['header']): Answer {
  const headers = { etag: tag, 'cache-control': 'no-cache' }
  const known = (header('if-none-match') ?? '').split(',').map((one) => one.trim().replace(/^W\//, ''))
  return known.includes(tag) || known.includes('*')
    ? { status: 304, body: undefined, headers }
    : { status: 200, body: text, headers }
}

/** Describes the 304 of `answerKept`. */
export const notModified = { description: 'The header If-None-Match names this version' }
