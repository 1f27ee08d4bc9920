/// <reference path="./undici.d.ts" />
import type { LookupFunction } from 'node:net'
import type { SecureContext, TLSSocket } from 'node:tls'
import buildConnect from 'undici/lib/core/connect.js'
import symbols from 'undici/lib/core/symbols.js'
import Client from 'undici/lib/dispatcher/client.js'

/** A server may end an unused connection this much earlier than it says, milliseconds. */
const marginMs = 1_000

/** Carries one request at a time. It connects when it has a request. */
export interface Connection {
  readonly client: Client
  readonly origin: string
  /** Whether the request under way goes over a connection that was kept. */
  isReused: boolean
  /** Why the connection ended. Of several errors the first: TLS says more than the end that follows. */
  error: Error | undefined
  /** Whether the server's system has taken all that was written. */
  isSent(): boolean
  /** Ends the connection, also one whose handshake is under way. Its request fails. */
  end(): void
}

export type Connections = ReturnType<typeof openConnections>

/** Opens connections to servers, and keeps unused ones for the next requests. */
export function openConnections(options: {
  lookup: LookupFunction
  secureContext: SecureContext
  maxHeaderBytes: number
  /** How long an unused connection is kept, milliseconds. */
  idleMs: number
  /** Maximum number of unused connections, to one origin and in all. */
  maxUnused: { perOrigin: number; total: number }
}) {
  const { lookup, secureContext, maxHeaderBytes, idleMs, maxUnused } = options
  // The deadline of a request also ends the handshake.
  const connect = buildConnect({ lookup, secureContext, timeout: 0 })
  const open = new Set<Connection>()
  const unused = new Map<string, Connection[]>()
  let unusedTotal = 0

  return {
    /** Returns the connection to `origin` that was used last, or a new one. Only the caller has it until it is kept. */
    take(origin: string): Connection {
      const kept = unused.get(origin)?.findLast((connection) => connection.isSent())
      if (!kept) return start(origin)
      forget(kept)
      kept.isReused = true
      return kept
    },

    /** Keeps a connection whose answer was read to the end, or ends it. */
    keep(connection: Connection): void {
      if (connection.client.destroyed) return
      const others = unused.get(connection.origin) ?? []
      if (unusedTotal >= maxUnused.total || others.length >= maxUnused.perOrigin) {
        connection.end()
        return
      }
      others.push(connection)
      unused.set(connection.origin, others)
      unusedTotal++
    },

    close(): void {
      for (const connection of open) connection.end()
    },
  }

  function start(origin: string): Connection {
    let socket: TLSSocket | undefined
    const client = new Client(origin, {
      maxHeaderSize: maxHeaderBytes,
      // The deadline of a request is exact, those of undici are not.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: idleMs,
      keepAliveTimeoutThreshold: marginMs,
      connect(to, done) {
        connection.isReused = false
        connection.error = undefined
        open.add(connection)
        socket = connect(to, (...result) => {
          done(...result)
          if (socket) readAsNode(socket)
        })
        socket.on('error', (error) => {
          connection.error ??= error
        })
        socket.once('close', () => {
          open.delete(connection)
          forget(connection)
        })
      },
    })
    const connection: Connection = {
      client,
      origin,
      isReused: false,
      error: undefined,
      isSent: () => (socket?.writableLength ?? 0) === 0,
      end(): void {
        client.destroy(() => undefined)
        // The client does not know a socket that still connects.
        socket?.destroy()
      },
    }
    return connection
  }

  function forget(connection: Connection): void {
    const kept = unused.get(connection.origin)
    const at = kept?.indexOf(connection) ?? -1
    if (!kept || at < 0) return
    kept.splice(at, 1)
    unusedTotal--
    if (kept.length === 0) unused.delete(connection.origin)
  }
}

interface Parser {
  onHeadersComplete(status: number, isUpgrade: boolean, isKeptAlive: boolean): number
  onStatus(text: Buffer): number
  trackHeader(bytes: number): void
}

/**
 * Changes two things of the parser of undici: it takes an interim answer 100 for a failure (RFC 9110 §15.2), and it
 * reads a reason phrase without end.
 */
function readAsNode(socket: TLSSocket & { [symbols.kParser]?: Parser | null }): void {
  const parser = socket[symbols.kParser]
  if (!parser) return
  const complete = parser.onHeadersComplete.bind(parser)
  parser.onHeadersComplete = (status, ...rest) => complete(status === 100 ? 103 : status, ...rest)
  parser.onStatus = (text) => {
    parser.trackHeader(text.length)
    return 0
  }
}
