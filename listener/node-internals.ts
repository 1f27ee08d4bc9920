import type { ChildProcess } from 'node:child_process'
import type { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'

/*
 * All changes that the hub makes to Node's own objects, each with its gain. If a Node version works in another way,
 * only the gain is lost.
 */

/** Hands bytes that a socket has read to the stream of the socket. Null: the peer has ended. */
type Push = (chunk: Buffer | null, encoding?: BufferEncoding) => boolean

/**
 * Lets `make` replace the function that hands bytes from a socket to its stream. `make` gets the socket's own function.
 *
 * Gain: 9 % of the CPU time of a delivery at QoS 1 (`npm run bench -- fanout`), because `takePubacksAhead` keeps
 * PUBACKs out of the stream. If a Node version hands over the bytes in another way, the stream gets all of them.
 */
export function replacePush(socket: Duplex, make: (push: Push) => Push): void {
  socket.push = make(socket.push.bind(socket))
}

/**
 * Removes Node's own listeners of an event, and returns a function that calls them. Undefined: there are none, and Node
 * does the work itself, all at once.
 *
 * Gain: the hub spreads the listeners' work over several turns of the event loop. Without this change, 1,000 TLS
 * handshakes took 1.4 s in one turn, the requests of one chunk 733 ms.
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
 * Gain: the hub reads from a connection only when all earlier bytes are parsed. If a Node version pauses sockets in
 * another way, Node reads one chunk too many.
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

interface Handle {
  close(): void
}

/** The worker to which the primary of a cluster last handed a connection. */
const holderOf = new WeakMap<Handle, ChildProcess>()

/**
 * Closes the connection that the primary of a cluster was handing to a worker when the worker ended.
 *
 * Gain: its client comes back at once. Node forgets such a connection: it stays open until the client gives up, for
 * each port and each death of a worker. If a Node version hands connections over in another way, it stays open.
 */
export function closeUnaccepted(worker: ChildProcess): void {
  // Absent where the system had no open file left for the worker.
  const { send } = worker
  /** One for each port: the primary waits for the answer before it hands over the next one. */
  const last = new Map<unknown, Handle>()
  Object.assign(worker, {
    send(...args: Parameters<ChildProcess['send']>): boolean {
      const [message, handle] = args
      const { act, key } = Object(message)
      if (act === 'newconn' && isHandle(handle)) {
        last.set(key, handle)
        holderOf.set(handle, worker)
      }
      return send.apply(worker, args)
    },
  })
  // Closing what is closed already does nothing.
  worker.once('exit', () => {
    for (const handle of last.values()) if (holderOf.get(handle) === worker) handle.close()
  })
}

function isHandle(value: unknown): value is Handle {
  return typeof value === 'object' && value !== null && 'close' in value && typeof value.close === 'function'
}
