/** Some pieces are always fine (`freePieces`). Above them, there may be one for each 64 bytes. */
const usualPieceBytes = 64

/**
 * Whether something arrives in pieces so small that taking them costs far more than they bring: no client writes a
 * request or a packet byte by byte, and each byte alone costs a node as much as a kilobyte.
 */
export function isTooFine(pieces: number, bytes: number, freePieces: number): boolean {
  return pieces > freePieces + bytes / usualPieceBytes
}

export type HalfReceived = ReturnType<typeof createHalfReceived>

/** Bytes that are copied together until they are whole. */
export type Collected = ReturnType<HalfReceived['collect']>

/** A place for bytes that are kept elsewhere. */
export type Held = ReturnType<HalfReceived['hold']>

/**
 * Counts, over all connections, the bytes of requests and packets that have not arrived completely, and of packets that
 * still wait. Above `limitBytes` the oldest of them ends: a client that sends at a usual pace is done long before.
 * `freePieces`: so many pieces may have any size, however small.
 */
export function createHalfReceived(limitBytes: number, freePieces: number) {
  /** The counted requests and packets, in the order in which they began. */
  const under = new Map<object, { bytes: number; end: () => void }>()
  let total = 0

  return {
    hold,

    /**
     * Collects the bytes of a request or packet on its way. Calls `end` when it has to end for the sake of others. Asks
     * `mayBeTiny` for each piece that is smaller than usual.
     */
    collect(end: () => void, mayBeTiny: () => boolean = always) {
      const place = hold(end)
      let buffer: Buffer = empty
      let length = 0
      let pieces = 0
      return {
        get length(): number {
          return length
        },

        /** The bytes so far. */
        bytes: (): Buffer => buffer.subarray(0, length),

        /** Adds a piece. `expected`: the length of the whole, as far as it is known. False: the pieces are too small. */
        add(piece: Buffer, expected: number): boolean {
          const needed = length + piece.length
          if (needed > buffer.length) {
            // Announced bytes cost nothing before they come.
            const larger = Buffer.allocUnsafe(Math.max(needed, Math.min(expected, 2 * buffer.length)))
            buffer.copy(larger, 0, 0, length)
            place.grow(larger.length - buffer.length)
            buffer = larger
          }
          piece.copy(buffer, length)
          length = needed
          pieces++
          if (piece.length < usualPieceBytes && !mayBeTiny()) return false
          return !isTooFine(pieces, length, freePieces)
        },

        /** Counts it no longer: it is whole, or given up. */
        free: place.free,
      }
    },
  }

  /** A place for the bytes of something that is on its way, wherever they are kept. */
  function hold(end: () => void) {
    const key = {}
    return {
      grow(bytes: number): void {
        const entry = under.get(key)
        if (entry) entry.bytes += bytes
        else under.set(key, { bytes, end })
        total += bytes
        if (total > limitBytes) makeRoom(key)
      },
      free: () => free(key),
    }
  }

  function free(key: object): void {
    total -= under.get(key)?.bytes ?? 0
    under.delete(key)
  }

  function makeRoom(forWhom: object): void {
    for (const [key, { end }] of under) {
      if (total <= limitBytes) return
      // The one that needs room stays: its own limit bounds it.
      if (key === forWhom) continue
      free(key)
      end()
    }
  }
}

const empty = Buffer.alloc(0)
const always = () => true
