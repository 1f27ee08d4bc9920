import type { Socket } from 'node:net'
import tls from 'node:tls'
import type { Certificates } from '../certs/certificates.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'

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
  accept: (socket: tls.TLSSocket, remoteAddress: string) => void
  log: Log
  metrics: Metrics
}) {
  const { host, port, certificates, maxConnections, maxConnectionsPerAddress, accept, log, metrics } = parts
  const perAddress = new Map<string, number>()
  let open = 0

  const server = tls.createServer({
    ...certificates.current(),
    minVersion: 'TLSv1.2',
    handshakeTimeout: handshakeTimeoutMs,
    // Nagle's algorithm would hold a second small packet back for up to 40 ms.
    noDelay: true,
  })
  const stopWatching = certificates.onChange((pair) => {
    server.setSecureContext({ ...pair, minVersion: 'TLSv1.2' })
    log.info('certificate replaced')
  })
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? 'unknown'
    const count = (perAddress.get(address) ?? 0) + 1
    const reason = refusalReason(count)
    if (reason) {
      metrics.connectionsRefused.inc({ reason })
      log.warn({ remoteAddress: address, reason }, 'connection refused')
      socket.destroy()
      return
    }
    open++
    perAddress.set(address, count)
    socket.once('close', () => {
      open--
      const left = (perAddress.get(address) ?? 1) - 1
      if (left > 0) perAddress.set(address, left)
      else perAddress.delete(address)
    })
  })
  server.on('secureConnection', (socket) => accept(socket, socket.remoteAddress ?? 'unknown'))
  server.on('tlsClientError', (error, socket) => {
    metrics.connectionsRefused.inc({ reason: 'tls' })
    log.debug({ err: error, remoteAddress: socket.remoteAddress }, 'TLS handshake failed')
    socket.destroy()
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

  function refusalReason(ofAddress: number): string | undefined {
    if (open >= maxConnections) return 'max-connections'
    if (maxConnectionsPerAddress > 0 && ofAddress > maxConnectionsPerAddress)
      return 'max-connections-per-address'
    return undefined
  }
}
