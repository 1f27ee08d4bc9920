import type { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'

/*
 * What the hub changes of Node's own objects, all of it in this file. Each change says what it gains, and what happens
 * with a Node that works in another way: everything is done as before, only without the gain.
 */

/**
 * Takes the first look at what a socket has read, before its stream has it. `take` answers how many bytes it took from the
 * front; the rest goes on into the stream.
 *
 * Gain: 9 % of the CPU time of a delivery at QoS 1 (`npm run bench -- fanout`), where nearly all that subscribers send is
 * one PUBACK for each message. The event that a stream makes of each chunk, and its look for more in a turn of its own,
 * cost several times as much as a PUBACK. If Node hands over what it reads in another way, all of it comes
 * through the stream.
 */
export function readAhead(socket: Duplex, take: (chunk: Buffer) => number): void {
  const { push } = socket
  socket.push = (chunk: Buffer | null, encoding?: BufferEncoding) => {
    // What the stream still holds comes first.
    if (chunk === null || socket.readableLength > 0) return push.call(socket, chunk, encoding)
    const taken = take(chunk)
    if (taken === 0) return push.call(socket, chunk, encoding)
    return taken === chunk.length || push.call(socket, chunk.subarray(taken))
  }
}

/**
 * Takes away the listeners that Node has for an event, and answers with a function that calls them: the hub decides
 * when they get what has happened.
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
 * Asks before a socket is paused or resumed, whoever does it: Node does, for each part of a body. The answer has the
 * socket's own methods, and `end`, which puts them back.
 *
 * Gain: nothing is read of a connection while there is something of it to parse. If Node pauses sockets in another way,
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
