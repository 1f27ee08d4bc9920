/** Beyond `freePieces`, a request or packet may have one more piece for each 64 bytes. */
const usualPieceBytes = 64

/**
 * Whether a request or packet arrives in too many small pieces: docs/decisions.md, "Tiny pieces are refused, not slowed
 * down".
 */
export function hasTooSmallPieces(pieces: number, bytes: number, freePieces: number): boolean {
  return pieces > freePieces + bytes / usualPieceBytes
}

export type HalfReceived = ReturnType<typeof createHalfReceived>

/** Collects the pieces of one request or packet in one buffer. */
export type Collected = ReturnType<HalfReceived['collect']>

/** Counts the bytes of one request or packet that the caller keeps itself. */
export type Held = ReturnType<HalfReceived['countBytes']>

/**
 * Counts the bytes that the node holds for clients:
 * - requests and packets that wait, or have not arrived completely
 * - answers that clients have not read.
 *
 * If these bytes together exceed `limitBytes`, the oldest requests, packets and answers are given up. Clients with a
 * usual pace have finished long before that. `freePieces`: this many pieces of a request or packet may have any size.
 */
export function createHalfReceived(limitBytes: number, freePieces: number) {
  /** The counted requests and packets, in the order in which they began. */
  const counted = new Map<object, { bytes: number; end: () => void }>()
  let total = 0

  return {
    countBytes,

    /**
     * Collects the bytes of one request or packet. Calls `end` when these bytes are dropped to make room for others.
     * Calls `mayBeTiny` for each piece of less than 64 bytes: false refuses the piece.
     */
    collect(end: () => void, mayBeTiny: () => boolean = always) {
      const room = countBytes(end)
      let buffer: Buffer = empty
      let length = 0
      let pieces = 0
      return {
        get length(): number {
          return length
        },

        /** The bytes that have arrived so far. */
        bytes: (): Buffer => buffer.subarray(0, length),

        /** Adds a piece. `expected`: bytes of the whole, 0 if unknown. Returns false if the pieces are too small. */
        add(piece: Buffer, expected: number): boolean {
          const needed = length + piece.length
          if (needed > buffer.length) {
            // The buffer grows with the bytes that arrive: an announced length alone must take no memory.
            const larger = Buffer.allocUnsafe(Math.max(needed, Math.min(expected, 2 * buffer.length)))
            buffer.copy(larger, 0, 0, length)
            room.grow(larger.length - buffer.length)
            buffer = larger
          }
          piece.copy(buffer, length)
          length = needed
          pieces++
          if (piece.length < usualPieceBytes && !mayBeTiny()) return false
          return !hasTooSmallPieces(pieces, length, freePieces)
        },

        /** Stops counting the bytes: the request or packet is whole, or was given up. */
        free: room.free,
      }
    },
  }

  /**
   * Counts the bytes of one request or packet that the caller keeps. Calls `end` when the caller must give up these
   * bytes to make room for others.
   */
  function countBytes(end: () => void) {
    const key = {}
    return {
      grow(bytes: number): void {
        const entry = counted.get(key)
        if (entry) entry.bytes += bytes
        else counted.set(key, { bytes, end })
        total += bytes
        if (total > limitBytes) makeRoom(key)
      },
      free: () => free(key),
    }
  }

  function free(key: object): void {
    total -= counted.get(key)?.bytes ?? 0
    counted.delete(key)
  }

  function makeRoom(forWhom: object): void {
    for (const [key, { end }] of counted) {
      if (total <= limitBytes) return
      // The request or packet that has just grown stays: its own limit bounds it.
      if (key === forWhom) continue
      free(key)
      end()
    }
  }
}

const empty = Buffer.alloc(0)
const always = () => true
