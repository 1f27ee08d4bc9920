import type { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'

/*
 * This file has all changes that the hub makes to Node's own objects. The comment of each change names its gain. If a
 * Node version works in another way, the hub behaves as without the change: only the gain is lost.
 */

/** Hands bytes that a socket has read to the stream of the socket. Null: the peer has ended. */
type Push = (chunk: Buffer | null, encoding?: BufferEncoding) => boolean

/**
 * Lets `make` replace the function by which the stream of a socket gets the bytes that were read. `make` gets the
 * socket's own function.
 *
 * Gain: 9 % of the CPU time of a delivery at QoS 1 (`npm run bench -- fanout`), because subscribers send hardly
 * anything but one PUBACK per message, and `takePubacksAhead` takes PUBACKs ahead of the stream. For each chunk a stream emits an
 * event, and looks for more bytes in a separate turn of the event loop. Both cost several times as much as a PUBACK. If
 * a Node version hands over the bytes in another way, the stream gets all of them.
 */
export function replacePush(socket: Duplex, make: (push: Push) => Push): void {
  socket.push = make(socket.push.bind(socket))
}

/**
 * Removes Node's own listeners of an event, and returns a function that calls them. So the hub decides when they run.
 *
 * Gain: the hub spreads work over several turns of the event loop. The hub begins at most one TLS handshake per turn:
 * without this change, 1,000 handshakes took 1.4 s in one turn. The hub parses requests in steps of 4 KiB: without this
 * change, the requests that arrived in one chunk took 733 ms. If Node has no listener of this event, the result is
 * undefined, and Node does the work itself, all at once.
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
 * Node pauses and resumes a socket for each part of a request body. From now on these calls go to `instead`. Returns
 * the socket's own `pause` and `resume`, and `end`, which puts them back.
 *
 * Gain: the hub reads from a connection only when it has parsed all earlier bytes of the connection. If a Node version
 * pauses sockets in another way, Node reads one chunk too many.
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
