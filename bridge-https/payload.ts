import type { IncomingMessage } from 'node:http'
import { errorItem } from '../event/error.ts'
import { createHalfReceived, type HalfReceived, hasTooSmallPieces } from '../listener/half-received.ts'
import { type Answer, belowBody, httpsError, refuse, refuseUntil } from './answer.ts'

/** A body as it arrived, or the answer that refuses it. */
export type Payload = { bytes: Buffer } | { refused: Answer }

/** A body that is too long is still read, up to this many bytes. Clients do not read the refusal while they write. */
const drainBytes = 4 * 1024 * 1024
/** This many pieces of a body can be tiny: some clients write JSON token by token. */
const freePieces = 4096
/** Seconds after which a client may send a refused body again. */
const busyRetry = 5

/** Limits the size of all half-received bodies together: above `limitBytes` the oldest are refused. */
export function createBodyRoom(limitBytes: number): HalfReceived {
  return createHalfReceived(limitBytes, freePieces)
}

/**
 * Reads a body of at most `maxBytes`, whatever length the header announces. Copies each piece: a tiny piece would keep
 * its whole read buffer in memory.
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
    // The connection was cut, but the route still waits for a payload.
    const cut = () => finish({ refused: refuse(400, [httpsError('request.length')]) })
    stream.once('error', cut)
    stream.once('close', cut)

    /**
     * Stops reading. The connection ends with the answer.
     *
     * The HTTP parser may still emit hundreds of pieces in this turn of the event loop. A stream that is paused at once
     * would keep all these pieces. So the hub discards them. After this turn, the hub pauses the stream and its socket.
     * Otherwise the parser would emit thousands more.
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

/** Whether an unwanted body is short enough to be read, so that the connection stays open. */
export function isShort({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const length = Number(headers['content-length'] ?? 0)
  return headers['transfer-encoding'] === undefined && length <= drainBytes
}
