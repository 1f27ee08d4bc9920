import type { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'

/*
 * All changes that the hub makes to Node's own objects. The comment of each change names its gain. In a Node version
 * that works in another way, the hub behaves as without the change, and only the gain is lost.
 */

/**
 * Shows `take` the bytes that a socket has read, before its stream gets them. `take` answers how many bytes it took
 * from the front. The stream gets the rest.
 *
 * Gain: 9 % of the CPU time of a delivery at QoS 1 (`npm run bench -- fanout`), where subscribers send little else than
 * one PUBACK for each message. For each chunk a stream emits an event, and looks for more bytes in a separate turn.
 * Both cost several times as much as a PUBACK. If Node hands over the bytes in another way, all of them come through
 * the stream.
 */
export function readAhead(socket: Duplex, take: (chunk: Buffer) => number): void {
  const { push } = socket
  socket.push = (chunk: Buffer | null, encoding?: BufferEncoding) => {
    // Bytes that the stream still holds come first.
    if (chunk === null || socket.readableLength > 0) return push.call(socket, chunk, encoding)
    const taken = take(chunk)
    if (taken === 0) return push.call(socket, chunk, encoding)
    return taken === chunk.length || push.call(socket, chunk.subarray(taken))
  }
}

/**
 * Removes the listeners that Node has for an event, and returns a function that calls them. So the hub decides when
 * they run.
 *
 * Gain: a server begins one TLS handshake per turn. Before, 1,000 handshakes took 1.4 s of one turn. A server also
 * parses requests in steps of 4 KiB. Before, the requests of one read took 733 ms. If Node has no such listener, the
 * result is undefined, and Node does the same work by itself at once.
 */
export function takeListeners<Args extends unknown[]>(
  emitter: EventEmitter,
  event: string,
): ((...args: Args) => void) | undefined {
  const listeners = emitter.listeners(event)
  if (listeners.length === 0) return undefined
  emitter.removeAllListeners(event)
  return (...args) => {
    for (const listener of listeners) listener.apply(emitter, args)
  }
}

/**
 * Node pauses and resumes a socket for each part of a body. Calls `instead` in place of that. Returns the socket's own
 * methods, and `end`, which puts them back.
 *
 * Gain: a connection is not read while it has unparsed bytes. If Node pauses sockets in another way,
 * Node reads ahead by one read.
 */
export function interceptPauses(
  socket: Duplex,
  instead: { pause: () => void; resume: () => void },
): { pause: () => void; resume: () => void; end: () => void } {
  const { pause, resume } = socket
  Object.assign(socket, {
    pause() {
      instead.pause()
      return socket
    },
    resume() {
      instead.resume()
      return socket
    },
  })
  return {
    pause: () => void pause.call(socket),
    resume: () => void resume.call(socket),
    end: () => void Object.assign(socket, { pause, resume }),
  }
}
