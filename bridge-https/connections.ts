import type { Server } from 'node:https'
import type { Socket } from 'node:net'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** Finds the client's address in what a load balancer sends first; undefined: the balancer itself. */
export type ReadAddress = (socket: Socket) => Promise<string | undefined>

/**
 * Bounds the connections of a TLS server before they cost a handshake, and knows the address of the client
 * behind each.
 */
export function boundConnections(
  server: Server,
  parts: {
    maxConnections: number
    /** 0: no limit. */
    maxConnectionsPerAddress: number
    readAddress?: ReadAddress | undefined
    log: Log
    metrics: Metrics
  },
) {
  const { maxConnections, maxConnectionsPerAddress, readAddress, log, metrics } = parts
  const perAddress = new Map<string, number>()
  /** Client address by the socket's own peer: the socket inside of TLS has that as well. */
  const addresses = new Map<string, string>()
  const open = new Set<Socket>()

  // The server's own listener starts the handshake. It gets the socket after us.
  const handshakes = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => socket.destroy())
    admit(socket).catch((error: unknown) => {
      refuse(socket, 'proxy-header', error instanceof Error ? error.message : String(error))
    })
  })

  return {
    /** The client behind a socket. */
    addressOf: (socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): string =>
      addresses.get(peerOf(socket)) ?? socket.remoteAddress ?? 'unknown',
    /** Ends every connection at once. */
    destroyAll(): void {
      for (const socket of open) socket.destroy()
    },
  }

  async function admit(socket: Socket): Promise<void> {
    // Counted before anything is awaited, so that a flood of silent connections is bounded as well.
    if (open.size >= maxConnections) return refuse(socket, 'max-connections')
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    const own = socket.remoteAddress ?? 'unknown'
    const peer = peerOf(socket)
    const client = readAddress ? ((await readAddress(socket)) ?? own) : own
    if (socket.destroyed) return
    const count = (perAddress.get(client) ?? 0) + 1
    if (maxConnectionsPerAddress > 0 && count > maxConnectionsPerAddress) {
      return refuse(socket, 'max-connections-per-address')
    }
    perAddress.set(client, count)
    addresses.set(peer, client)
    socket.once('close', () => {
      addresses.delete(peer)
      const left = (perAddress.get(client) ?? 1) - 1
      if (left > 0) perAddress.set(client, left)
      else perAddress.delete(client)
    })
    for (const handshake of handshakes) handshake.call(server, socket)
  }

  function refuse(socket: Socket, reason: string, detail?: string): void {
    metrics.connectionsRefused.inc({ reason })
    log.warn({ remoteAddress: socket.remoteAddress, reason, detail }, 'connection refused')
    socket.destroy()
  }
}

function peerOf({ remoteAddress, remotePort }: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress} ${remotePort}`
}
