import type { IncomingMessage } from 'node:http'
import { errorItem } from '../event/error.ts'
import { type Answer, belowBody, httpsError, refuse } from './answer.ts'

/** A body as it came in, or why it was not taken. */
export type Payload = { bytes: Buffer } | { refused: Answer }

/** What is too long is read to its end all the same, up to this: who still writes does not read the answer. */
const drainBytes = 4 * 1024 * 1024

/** Reads a body of at most `maxBytes`, counting what really arrives. */
export function readPayload(stream: IncomingMessage, maxBytes: number): Promise<Payload> {
  const chunks: Buffer[] = []
  let length = 0
  return new Promise((resolve) => {
    stream.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length <= maxBytes) chunks.push(chunk)
      else chunks.length = 0
      if (length > drainBytes) {
        stream.removeAllListeners('data')
        stream.pause()
        resolve({ refused: tooLarge(maxBytes) })
      }
    })
    stream.once('end', () => {
      resolve(length > maxBytes ? { refused: tooLarge(maxBytes) } : { bytes: Buffer.concat(chunks) })
    })
    // Cut off: nobody is there to read the answer, but somebody waits for one.
    const cut = () => resolve({ refused: refuse(400, [httpsError('request.length')]) })
    stream.once('error', cut)
    stream.once('close', cut)
  })
}

function tooLarge(maxBytes: number): Answer {
  const error = errorItem('payload.size', '.', `more than ${maxBytes} bytes`)
  return refuse(413, belowBody([error]))
}

/** Whether the rest of a body nobody waits for is worth reading, to keep the connection. */
export function isShort({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const length = Number(headers['content-length'] ?? 0)
  return headers['transfer-encoding'] === undefined && length <= drainBytes
}
