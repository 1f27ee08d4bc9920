import { Readable } from 'node:stream'

/** An answer with more bytes than this is sent in pieces. */
export const pieceBytes = 32 * 1024

/**
 * Bytes as a stream of pieces. TLS encrypts all bytes of a write at once. With pieces, a client that does not read
 * makes the node hold one encrypted piece, and not all bytes.
 */
export function inPieces(bytes: Buffer): Readable {
  const starts = Array.from(
    { length: Math.ceil(bytes.length / pieceBytes) },
    (_, index) => index * pieceBytes,
  )
  const pieces = starts.map((start) => bytes.subarray(start, start + pieceBytes))
  return Readable.from(pieces, { highWaterMark: 1 })
}
