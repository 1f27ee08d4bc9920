import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Server } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { interceptPauses, takeListeners } from '../listener/node-internals.ts'
import { timePerTurn } from '../listener/pacing.ts'
import { createLastResponse } from './last-response.ts'
import { HubRequest, hasLeft } from './request.ts'

/** Bytes of a connection that are parsed in one step: one read may hold thousands of requests. */
const stepBytes = 4096
/** Longest time of steps in one turn of the event loop, milliseconds. */
const maxTurnMs = 5
/** Maximum number of steps in one turn of the event loop. */
const maxTurnSteps = 64

interface Exchange {
  request: IncomingMessage
  response: ServerResponse
}

interface Connection {
  readonly socket: TLSSocket
  /** Received and not parsed yet. */
  unparsed: Buffer
  /** Requests that are not answered, the oldest first. */
  readonly exchanges: Exchange[]
  /** The oldest request is being handled. */
  isHandling: boolean
  /** Node wants to read more of the connection. */
  isWanted: boolean
  isQueued: boolean
  /** The connection ends with the answer to the newest request: nothing behind that request is parsed. */
  isLast: boolean
  parse(bytes: Buffer): void
  /** Reads from the network again. */
  read(): void
  leave(): void
}

/**
 * Serves the connections of a server alternately, one request of a connection at a time. A connection with unparsed
 * bytes is not read: requests sent ahead wait in the network. See docs/decisions, "Requests are parsed in small
 * steps".
 */
export function createRoundRobin(server: Server) {
  const connections = new WeakMap<object, Connection>()
  /** Connections that have a request to handle or bytes to parse. */
  const queue: Connection[] = []
  /** Number of calls of `takeStep` that are to come. */
  let scheduled = 0
  const fitsTurn = timePerTurn(maxTurnMs)

  const handle = takeListeners<[IncomingMessage, ServerResponse]>(server, 'request')
  server.on('request', (request, response) => {
    const connection = connections.get(request.socket)
    if (!connection) return handle?.(request, response)
    if (hasLeft(request.socket)) return void request.socket.destroy()
    // Node drops what it parses together with such a request and stands behind it. What comes later may begin within
    // the next request.
    if (request instanceof HubRequest && request.isUpgradeOffered) {
      response.setHeader('connection', 'close')
      connection.isLast = true
    }
    connection.exchanges.push({ request, response })
    proceed(connection)
  })
  // The server's own listener comes first, and makes a parser. `enter` takes over the `data` listener of that parser.
  server.on('secureConnection', enter)

  return {
    /**
     * Releases a connection that speaks another protocol from now on. Resolves with its unparsed bytes when the requests
     * before are answered: a step of parsing may have read some of them, and this one.
     */
    async leave(socket: object): Promise<Buffer> {
      const connection = connections.get(socket)
      if (!connection) return empty
      const { unparsed, exchanges } = connection
      connection.leave()
      const last = exchanges.at(-1)
      // Not by the function `once`, which rejects where an answer cannot be sent.
      if (last) await new Promise((resolve) => last.response.once('close', resolve))
      return unparsed
    },

    /** Serves a request with which its connection leaves HTTP, behind the requests before. */
    serveLast(request: IncomingMessage): void {
      const connection = connections.get(request.socket)
      if (!connection) return void request.socket.destroy()
      const { socket } = connection
      connection.leave()
      connection.exchanges.push({ request, response: createLastResponse(request, socket) })
      proceed(connection)
    },
  }

  function enter(socket: TLSSocket): void {
    const parse = takeListeners<[Buffer]>(socket, 'data')
    if (!parse) return
    // Node resumes the socket for each part of a body. Reading must wait until all bytes are parsed.
    const own = interceptPauses(socket, {
      pause() {
        connection.isWanted = false
        own.pause()
      },
      resume() {
        connection.isWanted = true
        if (connection.unparsed.length === 0) own.resume()
        else proceed(connection)
      },
    })
    const connection: Connection = {
      socket,
      parse,
      unparsed: empty,
      exchanges: [],
      isHandling: false,
      isWanted: true,
      isQueued: false,
      isLast: false,
      read: own.resume,
      leave() {
        connections.delete(socket)
        // Node has freed the parser, which may serve another connection by now: it must get no more bytes.
        connection.unparsed = empty
        socket.off('data', receive).off('end', last)
        own.end()
      },
    }
    const receive = (bytes: Buffer) => {
      connection.unparsed =
        connection.unparsed.length === 0 ? bytes : Buffer.concat([connection.unparsed, bytes])
      own.pause()
      proceed(connection)
    }
    // Runs before Node's own `end` listener. A client that sends nothing more may still wait for the answer to an
    // unparsed request.
    const last = () => {
      if (!connection.isLast) parseSome(connection)
    }
    connections.set(socket, connection)
    socket.prependListener('end', last)
    socket.on('data', receive)
  }

  function proceed(connection: Connection): void {
    if (connection.isQueued || !(mayHandle(connection) || mayParse(connection))) return
    connection.isQueued = true
    queue.push(connection)
    schedule()
  }

  /**
   * Each step is a call of the event loop of its own. Node then does all that follows from a step, such as the work of
   * the route, before the next step begins. So `fitsTurn` knows how long that took.
   */
  function schedule(): void {
    while (scheduled < Math.min(queue.length, maxTurnSteps)) {
      scheduled++
      setImmediate(takeStep)
    }
  }

  function takeStep(): void {
    scheduled--
    const connection = fitsTurn() ? queue.shift() : undefined
    if (connection) {
      connection.isQueued = false
      if (mayHandle(connection)) handleFirst(connection)
      else if (mayParse(connection)) parseSome(connection)
      // A connection that may take another step is queued again, behind all others.
      proceed(connection)
    }
    schedule()
  }

  function handleFirst(connection: Connection): void {
    const [first] = connection.exchanges
    if (!first) return
    connection.isHandling = true
    // Node itself has no place for a response to a last request. Those before have left theirs.
    if (!first.response.socket) first.response.assignSocket(connection.socket)
    first.response.once('close', () => {
      connection.isHandling = false
      connection.exchanges.shift()
      proceed(connection)
    })
    handle?.(first.request, first.response)
  }

  function parseSome(connection: Connection): void {
    const { unparsed } = connection
    const step = stepOf(connection)
    connection.unparsed = unparsed.subarray(step.length)
    if (step.length > 0) connection.parse(step)
    if (connection.unparsed.length > 0 || !connections.has(connection.socket)) return
    connection.unparsed = empty
    if (connection.isWanted) connection.read()
  }
}

function mayHandle({ socket, exchanges, isHandling }: Connection): boolean {
  return exchanges.length > 0 && !isHandling && !socket.destroyed
}

/** Whether bytes may be parsed now. The next request must wait until the previous answer is written. */
function mayParse({ socket, unparsed, exchanges, isWanted, isLast }: Connection): boolean {
  if (unparsed.length === 0 || !isWanted || socket.destroyed) return false
  const request = exchanges.at(-1)?.request
  return isLast ? request?.complete === false : request?.complete !== true
}

/**
 * What to parse next. A step ends with the head of a request: of what stands behind a last request in the same step, some
 * versions of Node read another request.
 */
function stepOf({ unparsed, exchanges }: Connection): Buffer {
  const isWithinBody = exchanges.at(-1)?.request.complete === false
  const end = isWithinBody ? -1 : unparsed.indexOf(headEnd)
  return unparsed.subarray(0, Math.min(stepBytes, end < 0 ? stepBytes : end + headEnd.length))
}

const headEnd = Buffer.from('\r\n\r\n')
const empty = Buffer.alloc(0)
