/** Beyond `freePieces`, a request or packet may have one more piece for each 64 bytes. */
const usualPieceBytes = 64

/**
 * Whether a request or packet arrives in too many small pieces: docs/decisions, "Tiny pieces are refused, not slowed
 * down".
 */
export function hasTooSmallPieces(pieces: number, bytes: number, freePieces: number): boolean {
  return pieces > freePieces + bytes / usualPieceBytes
}

export type HalfReceived = ReturnType<typeof createHalfReceived>

/** Collects the pieces of one request or packet in one buffer. */
export type Collected = ReturnType<HalfReceived['collect']>

/** Counts the bytes of one request or packet that is kept elsewhere. */
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
  /** The requests and packets that hold bytes are linked, in the order in which they began. */
  // No map: docs/decisions, "Nothing that comes and goes with each event lies in a set or a map".
  let oldest: HeldLink | undefined
  let newest: HeldLink | undefined
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
            // The buffer grows with the bytes that arrive: an announced length alone must take no memory. It is no part
            // of a larger piece, of which memory would have more than is counted.
            const larger = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(expected, 2 * buffer.length)))
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
   * Counts the bytes of one request or packet that is kept elsewhere. Calls `end`, which gives up the request or packet,
   * to make room for others.
   */
  function countBytes(end: () => void) {
    const own: HeldLink = { bytes: 0, end, before: undefined, after: undefined }
    return {
      grow(bytes: number): void {
        if (own !== oldest && !own.before) append(own)
        own.bytes += bytes
        total += bytes
        if (total > limitBytes) makeRoom(own)
      },
      free: () => free(own),
    }
  }

  function append(own: HeldLink): void {
    own.before = newest
    if (newest) newest.after = own
    else oldest = own
    newest = own
  }

  function free(own: HeldLink): void {
    const { before, after } = own
    if (before) before.after = after
    else if (own === oldest) oldest = after
    if (after) after.before = before
    else if (own === newest) newest = before
    total -= own.bytes
    own.bytes = 0
    own.before = undefined
    own.after = undefined
  }

  function makeRoom(forWhom: HeldLink): void {
    while (total > limitBytes) {
      // The request or packet that has just grown stays: its own limit bounds it.
      const link = oldest === forWhom ? forWhom.after : oldest
      if (!link) return
      free(link)
      link.end()
    }
  }
}

/** A request or packet that may hold bytes. */
interface HeldLink {
  bytes: number
  readonly end: () => void
  before: HeldLink | undefined
  after: HeldLink | undefined
}

const empty = Buffer.alloc(0)
const always = () => true
