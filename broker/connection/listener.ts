import { createServer, type TLSSocket } from 'node:tls'
import type { Certificates } from '../../certs/certificates.ts'
import { type ClientCa, type ClientCertificate, clientCertificateOf } from '../../certs/client-certificate.ts'
import type { TicketKeys } from '../../certs/ticket-keys.ts'
import type { Bans } from '../../listener/bans.ts'
import type { ConnectionBounds } from '../../listener/connection-bounds.ts'
import { guardServer, tlsOptions } from '../../listener/tls-server.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'

/** Accepts MQTT over TLS 1.2 or later. Passes each connection to `accept` after its TLS handshake. */
export async function listenMqtt(parts: {
  host: string
  port: number
  certificates: Certificates
  tickets: TicketKeys
  /** Limits on open connections, shared with the listener of MQTT over WebSocket. */
  bounds: ConnectionBounds
  proxyProtocol: boolean
  proxyFrom: readonly string[]
  bans: Pick<Bans, 'hasAddress' | 'onBanned'>
  /** The CA of clients that log in with certificates. */
  clientCa: ClientCa | undefined
  accept: (socket: TLSSocket, remoteAddress: string, certificate?: ClientCertificate) => void
  clock: () => number
  log: Log
  metrics: Metrics
}) {
  const { host, port, accept, log } = parts
  const server = createServer(tlsOptions(parts))
  const guard = guardServer(server, { ...parts, turnsPerHandshake: 2 })
  server.on('secureConnection', (socket) => {
    const certificate = parts.clientCa && clientCertificateOf(socket, parts.clock())
    accept(socket, guard.addressOf(socket), certificate)
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
    stop: (): void => void server.close(),
  }
}
