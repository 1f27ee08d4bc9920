import { Readable } from 'node:stream'

/** An answer with more bytes than this is sent in pieces. */
export const pieceBytes = 32 * 1024

/** Bytes as a stream of pieces. TLS would encrypt a whole answer at once, even for a client that reads nothing. */
export function inPieces(bytes: Buffer): Readable {
  const starts = Array.from(
    { length: Math.ceil(bytes.length / pieceBytes) },
    (_, index) => index * pieceBytes,
  )
  const pieces = starts.map((start) => bytes.subarray(start, start + pieceBytes))
  return Readable.from(pieces, { highWaterMark: 1 })
}
