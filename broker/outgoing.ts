import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'

/** A subscriber that keeps more than half its buffer for so long has stopped reading, milliseconds. */
const frozenMs = 10_000
/** Retained and queued messages wait while more than this is on its way, bytes. */
const maxPaceBytes = 128 * 1024
/** What a small packet costs beside its bytes: a million answers of two bytes are not two megabytes. */
const writeCostBytes = 64

/**
 * The bytes on their way to one peer: bounded, and nobody waits for them. The first packet goes out at once;
 * what comes before the network has taken it is written together afterwards, as streams do, without a timer,
 * a callback or a closure for each packet. `stuck` is told, with a reason, when the peer has stopped reading.
 */
export function createOutgoing(socket: Duplex, limitBytes: number, stuck: (detail: string) => void) {
  // So that a small buffer is not filled by what could have waited.
  const paceBytes = Math.min(maxPaceBytes, limitBytes / 4)
  // A TLS socket with nothing before them encrypts bytes before `write` returns: nobody needs them afterwards.
  const takesAtOnce = socket instanceof TLSSocket
  const waitingForRoom = new Set<() => void>()
  let smallWrites = 0
  let frozenTimer: NodeJS.Timeout | undefined
  const smallWritten = () => {
    smallWrites--
  }
  socket.on('drain', () => {
    stopTimer()
    wake()
  })

  return {
    paceBytes,

    // No getter: with one, each of these objects has a hidden class of its own, and every use of it is slow.
    /** Bytes written and not yet taken by the network. */
    pendingBytes: () => socket.writableLength,

    /** Writes one packet; false when the buffer is full. `isLent`: the caller is about to change the bytes. */
    write(bytes: Buffer, isLent = false): boolean {
      if (!socket.writable) return true // the peer is gone, what it sent is still being dealt with
      const before = socket.writableLength
      const waiting = before + smallWrites * writeCostBytes + bytes.length
      // The first packet always fits: a buffer smaller than the largest message must not lock anyone out.
      if (waiting > limitBytes && before > 0) return false
      if (waiting > limitBytes / 2) {
        frozenTimer ??= setTimeout(() => stuck(`not read for ${frozenMs} ms`), frozenMs).unref()
      }
      const own = isLent && !(takesAtOnce && before === 0) ? Buffer.from(bytes) : bytes
      if (bytes.length < writeCostBytes) {
        smallWrites++
        socket.write(own, smallWritten)
      } else {
        socket.write(own)
      }
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
