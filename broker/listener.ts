import net, { type Socket } from 'node:net'
import tls from 'node:tls'
import type { Certificates } from '../certs/certificates.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { readProxyHeader } from './proxy-protocol.ts'

/** Time for the TLS handshake, milliseconds. */
const handshakeTimeoutMs = 10_000

/**
 * Accepts MQTT over TLS 1.2 or later and hands over what is left of the handshake.
 * Connections over the limits are closed before they cost a handshake.
 */
export async function listenMqtt(parts: {
  host: string
  port: number
  certificates: Certificates
  /** Open connections. */
  maxConnections: number
  /** Open connections of one address; 0: no limit. */
  maxConnectionsPerAddress: number
  /** A load balancer in front tells the client's address in a PROXY protocol header. */
  proxyProtocol: boolean
  accept: (socket: tls.TLSSocket, remoteAddress: string) => void
  log: Log
  metrics: Metrics
}) {
  const { host, port, certificates, maxConnections, maxConnectionsPerAddress, proxyProtocol } = parts
  const { accept, log, metrics } = parts
  const perAddress = new Map<string, number>()
  /** Address of the client behind each open socket, by the socket's own peer. */
  const addresses = new Map<string, string>()
  let open = 0

  const secure = tls.createServer({
    ...certificates.current(),
    minVersion: 'TLSv1.2',
    handshakeTimeout: handshakeTimeoutMs,
  })
  const stopWatching = certificates.onChange((pair) => {
    secure.setSecureContext({ ...pair, minVersion: 'TLSv1.2' })
    log.info('certificate replaced')
  })
  secure.on('secureConnection', (socket) => accept(socket, addresses.get(peerOf(socket)) ?? 'unknown'))
  secure.on('tlsClientError', (error, socket) => {
    metrics.connectionsRefused.inc({ reason: 'tls' })
    log.debug({ err: error, remoteAddress: addresses.get(peerOf(socket)) }, 'TLS handshake failed')
    socket.destroy()
  })

  // Nagle's algorithm would hold a second small packet back for up to 40 ms.
  const server = net.createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    admit(socket).catch((error: unknown) => {
      refuse(socket, 'proxy-header', error instanceof Error ? error.message : String(error))
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve())
  })
  server.on('error', (error) => log.error({ err: error }, 'MQTT listener'))
  const address = server.address()

  return {
    port: typeof address === 'object' && address ? address.port : port,
    /** Stops accepting; open connections stay. */
    close(): void {
      stopWatching()
      server.close()
    },
  }

  async function admit(socket: Socket): Promise<void> {
    // Counted before anything is awaited, so that a flood of silent connections is bounded as well.
    if (open >= maxConnections) return refuse(socket, 'max-connections')
    const peer = peerOf(socket)
    const own = socket.remoteAddress ?? 'unknown'
    open++
    socket.once('close', () => open--)
    const client = proxyProtocol ? ((await readProxyHeader(socket)) ?? own) : own
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
    secure.emit('connection', socket)
  }

  function refuse(socket: Socket, reason: string, detail?: string): void {
    metrics.connectionsRefused.inc({ reason })
    log.warn({ remoteAddress: socket.remoteAddress, reason, detail }, 'connection refused')
    socket.destroy()
  }
}

function peerOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`
}
