import type { Duplex } from 'node:stream'

/** A subscriber that keeps more than half its buffer for so long has stopped reading, milliseconds. */
const frozenMs = 10_000
/** Retained and queued messages wait while more than this is on its way, bytes. */
const maxPaceBytes = 128 * 1024
/** What a waiting write costs beside its bytes: a million answers of two bytes are not two megabytes. */
const writeCostBytes = 64

/**
 * The bytes on their way to one peer: written together per turn of the event loop, bounded, and nobody
 * waits for them. `stuck` is told, with a reason, when the peer has stopped reading.
 */
export function createOutgoing(socket: Duplex, limitBytes: number, stuck: (detail: string) => void) {
  // So that a small buffer is not filled by what could have waited.
  const paceBytes = Math.min(maxPaceBytes, limitBytes / 4)
  const waitingForRoom = new Set<() => void>()
  let waitingWrites = 0
  let corked = false
  let frozenTimer: NodeJS.Timeout | undefined
  const written = () => {
    waitingWrites--
  }
  socket.on('drain', () => {
    stopTimer()
    wake()
  })

  return {
    paceBytes,

    /** Bytes written and not yet taken by the network. */
    get pendingBytes() {
      return socket.writableLength
    },

    /** Writes one packet; false when the buffer is full. */
    write(bytes: Buffer): boolean {
      if (!socket.writable) return true // the peer is gone, what it sent is still being dealt with
      const waiting = socket.writableLength + waitingWrites * writeCostBytes
      // The first packet always fits: a buffer smaller than the largest message must not lock anyone out.
      if (waiting + bytes.length > limitBytes && socket.writableLength > 0) return false
      if (waiting + bytes.length > limitBytes / 2) {
        frozenTimer ??= setTimeout(() => stuck(`not read for ${frozenMs} ms`), frozenMs).unref()
      }
      if (!corked) {
        corked = true
        socket.cork()
        process.nextTick(() => {
          corked = false
          socket.uncork()
        })
      }
      waitingWrites++
      socket.write(bytes, written)
      return true
    },

    /** Resolves when more may be written without piling up, at once where nothing waits. */
    async paced(isOpen: () => boolean): Promise<void> {
      while (isOpen() && socket.writableLength > paceBytes) {
        await new Promise<void>((resolve) => waitingForRoom.add(resolve))
      }
    },

    /** Lets go whoever waits. */
    close(): void {
      stopTimer()
      wake()
    },
  }

  function stopTimer(): void {
    clearTimeout(frozenTimer)
    frozenTimer = undefined
  }

  function wake(): void {
    for (const resolve of waitingForRoom) resolve()
    waitingForRoom.clear()
  }
}
