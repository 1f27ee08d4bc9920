import type { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'

/*
 * All changes that the hub makes to Node's own objects. Each one says what it gains. With a Node that works in another
 * way, everything is done as without the change, and only the gain is lost.
 */

/**
 * Shows `take` the bytes that a socket has read, before its stream gets them. `take` answers how many bytes it took from
 * the front. The rest goes into the stream.
 *
 * Gain: 9 % of the CPU time of a delivery at QoS 1 (`npm run bench -- fanout`), where nearly all that subscribers send is
 * one PUBACK for each message. The event that a stream makes of each chunk, and its look for more in a turn of its own,
 * cost several times as much as a PUBACK. If Node hands over what it reads in another way, all of it comes
 * through the stream.
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
 * Takes away the listeners that Node has for an event, and answers with a function that calls them: the hub decides
 * when they run.
 *
 * Gain: a server begins one TLS handshake in a turn, where 1,000 took 1.4 s of one turn, and parses 4 KiB of requests in
 * a step, where one read took 733 ms. If Node has no such listener, it does the same work by itself at once, and the
 * answer is undefined.
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
 * Calls `instead` in place of pausing or resuming a socket, which Node does for each part of a body. Returns the socket's
 * own methods, and `end`, which puts them back.
 *
 * Gain: a connection is not read while it has unparsed bytes. If Node pauses sockets in another way,
 * it reads ahead by one read.
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
