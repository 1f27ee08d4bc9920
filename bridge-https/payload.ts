import type { IncomingMessage } from 'node:http'
import { errorItem } from '../event/error.ts'
import { createHalfReceived, type HalfReceived, hasTooSmallPieces } from '../listener/half-received.ts'
import { type Answer, belowBody, httpsError, refuse, refuseUntil } from './answer.ts'

/** A body as it arrived, or the answer that refuses it. */
export type Payload = { bytes: Buffer } | { refused: Answer }

/** A too long body is still read up to this many bytes, because a client reads no answer while it writes. */
const drainBytes = 4 * 1024 * 1024
/** A body may come in this many pieces of any size, however small: some clients write JSON token by token. */
const freePieces = 4096
/** Seconds after which a client may send a refused body again. */
const busyRetry = 5

/** Limits the bytes of all half-received bodies together. Above the limit the oldest of these bodies are refused. */
export function createBodyRoom(limitBytes: number): HalfReceived {
  return createHalfReceived(limitBytes, freePieces)
}

/**
 * Reads a body of at most `maxBytes`. Counts the bytes that arrive, whatever length the header announces. Copies each
 * piece at once, because even a small piece keeps in memory the whole buffer that was read with it.
 */
export function readPayload(
  stream: IncomingMessage,
  maxBytes: number,
  halfReceived: HalfReceived,
): Promise<Payload> {
  return new Promise((resolve) => {
    const body = halfReceived.collect(() => giveUp(refuseUntil(503, busyRetry)))
    const announced = Math.min(Number(stream.headers['content-length'] ?? maxBytes), maxBytes)
    let length = 0
    let pieces = 0
    const take = (piece: Buffer) => {
      length += piece.length
      pieces++
      if (length <= maxBytes) body.add(piece, announced)
      else body.free()
      if (length > drainBytes) giveUp(tooLarge(maxBytes))
      else if (hasTooSmallPieces(pieces, length, freePieces))
        giveUp(refuse(400, [httpsError('request.form', 'the body comes in pieces that are too small')]))
    }
    stream.on('data', take)
    stream.once('end', () => {
      finish(length > maxBytes ? { refused: tooLarge(maxBytes) } : { bytes: body.bytes() })
    })
    // The connection was cut: no client reads the answer, but the route still waits for a payload.
    const cut = () => finish({ refused: refuse(400, [httpsError('request.length')]) })
    stream.once('error', cut)
    stream.once('close', cut)

    /**
     * Stops reading. The connection ends with the answer. In this turn of the event loop, the HTTP parser may still
     * emit hundreds of pieces. The stream drops them: if it were paused, it would keep them. After this turn the stream
     * and its socket are paused, so that the parser does not emit thousands more.
     */
    function giveUp({ headers, ...answer }: Answer): void {
      stream.off('data', take).on('data', () => undefined)
      setImmediate(() => {
        stream.pause()
        stream.socket.pause()
      })
      finish({ refused: { ...answer, headers: { ...headers, connection: 'close' } } })
    }

    function finish(payload: Payload): void {
      body.free()
      resolve(payload)
    }
  })
}

function tooLarge(maxBytes: number): Answer {
  const error = errorItem('payload.size', '.', `more than ${maxBytes} bytes`)
  return refuse(413, belowBody([error]))
}

/** Whether the rest of an unwanted body is short enough to be read, so that the connection can be kept. */
export function isShort({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const length = Number(headers['content-length'] ?? 0)
  return headers['transfer-encoding'] === undefined && length <= drainBytes
}
