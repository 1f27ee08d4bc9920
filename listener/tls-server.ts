import type { Socket } from 'node:net'
import type { Server, TLSSocket, TlsOptions } from 'node:tls'
import type { Certificates } from '../certs/certificates.ts'
import { type ClientCa, sessionsOf } from '../certs/client-certificate.ts'
import { type TicketKeys, ticketLifeSeconds } from '../certs/ticket-keys.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics, RefusedReason } from '../telemetry/metrics.ts'
import { reasonOf } from '../telemetry/reason.ts'
import { type Bans, createBanned } from './bans.ts'
import { clientHelloArrived } from './client-hello.ts'
import type { ConnectionBounds, ConnectionPlace } from './connection-bounds.ts'
import { createNetworks } from './networks.ts'
import { takeListeners } from './node-internals.ts'
import { originOf } from './origin.ts'
import { createPacing } from './pacing.ts'
import { readProxyHeader } from './proxy-protocol.ts'
import { createRefusedConnections } from './refused-connections.ts'
import { createTlsWarnings, tlsFailureReason } from './tls-failures.ts'
import { tlsSettings } from './tls-settings.ts'

/** Milliseconds for the ClientHello, and again for the rest of the handshake. */
const handshakeTimeout = 10_000
const closedEarly = 'closed before it sent anything: perhaps it does not trust the certificate'

/** What a TLS server of the hub identifies itself and its clients by. */
interface TlsParts {
  certificates: Pick<Certificates, 'current'>
  tickets: Pick<TicketKeys, 'current'>
  /** Asks clients for a certificate, and checks it. Clients without one get in. Absent: it does not ask. */
  clientCa?: ClientCa | undefined
}

/** The options of every TLS server of the hub. */
export function tlsOptions(parts: TlsParts) {
  // Nagle's algorithm would hold a second small packet back for up to 40 ms.
  const options = { ...contextOf(parts), handshakeTimeout, noDelay: true } satisfies TlsOptions
  // The log-in decides about a certificate that is not valid.
  return parts.clientCa ? { ...options, requestCert: true, rejectUnauthorized: false } : options
}

/** What may be replaced while the server runs. All nodes have it in common, so that a client resumes its session at each. */
function contextOf({ certificates, tickets, clientCa }: TlsParts) {
  const ca = clientCa?.current()
  return {
    ...certificates.current(),
    ...tlsSettings,
    ...(ca !== undefined && { ca }),
    sessionTimeout: ticketLifeSeconds,
    // By default it follows from the path of the program.
    sessionIdContext: ca === undefined ? 'now-playing-hub' : sessionsOf(ca),
    ticketKeys: tickets.current(),
  }
}

/**
 * The ends of a connection. A TLS socket and the TCP socket below it have the same ends, and share an entry of
 * `clients`.
 */
type Peer = Pick<Socket, 'localAddress' | 'localPort' | 'remoteAddress' | 'remotePort'>

interface Client {
  address: string
  place: ConnectionPlace
  /** The client's handshake has succeeded, or has failed for a reason that was logged. */
  isJudged: boolean
  /** The address of the client that a trusted proxy sends a request of now, or a WebSocket. */
  carried: string | undefined
}

/**
 * Adds the guards of every TLS server of the hub: limits before the handshake, client addresses behind a load balancer,
 * replaced certificates and ticket keys.
 */
export function guardServer(
  server: Server,
  parts: {
    certificates: Certificates
    tickets: TicketKeys
    clientCa?: ClientCa | undefined
    bounds: ConnectionBounds
    /**
     * One handshake (1 to 6 ms) begins in this many turns of the event loop. Node.js accepts one connection in each
     * turn. With a value above 1, clients therefore wait in the hub's queue, which serves addresses alternately.
     */
    turnsPerHandshake: number
    /** Whether a load balancer sends the client's address in a PROXY protocol header. */
    proxyProtocol: boolean
    /** Who may not connect. Absent: everybody may. */
    bans?: Pick<Bans, 'hasAddress' | 'onBanned'> | undefined
    /** The networks of the load balancers that may send one. Nobody else may connect. Empty: anybody. */
    proxyFrom: readonly string[]
    /** Whether an address is that of a proxy, whose connections carry requests of many clients. Absent: there are none. */
    isTrustedProxy?: (address: string) => boolean
    log: Log
    metrics: Metrics
  },
) {
  const { certificates, tickets, clientCa, bounds, turnsPerHandshake, proxyProtocol, log, metrics } = parts
  const { proxyFrom, bans, isTrustedProxy = () => false } = parts
  const isBalancer = proxyFrom.length > 0 ? createNetworks(proxyFrom) : () => true
  /** Clients by the addresses and ports of both sides of their connection. */
  const clients = new Map<string, Client>()
  const open = new Set<Socket>()
  const warn = createTlsWarnings(log)
  const refused = createRefusedConnections({ log, metrics })

  bans?.onBanned((ban) => {
    const isBanned = createBanned(ban)
    const isOfBanned = (socket: Socket) => {
      const carried = clients.get(endsOf(socket))?.carried
      return isBanned(addressOf(socket)) || (carried !== undefined && isBanned(carried))
    }
    for (const socket of open) if (isOfBanned(socket)) socket.destroy()
  })
  const renew = () => server.setSecureContext(contextOf(parts))
  certificates.onChange(renew)
  clientCa?.onChange(renew)
  tickets.onChange((key) => server.setTicketKeys(key))
  // In a worker, Node.js has just set the key with which the first worker once began to listen.
  server.on('listening', () => server.setTicketKeys(tickets.current()))
  server.on('tlsClientError', failed)
  server.on('secureConnection', (socket: TLSSocket) => {
    const client = clients.get(endsOf(socket))
    if (!client) return
    client.isJudged = true
    // Many clients check the certificate after the handshake. A client that then closes without sending a byte may not
    // trust the certificate.
    socket.once('close', () => {
      if (socket.bytesRead === 0) warn(client.address, closedEarly)
    })
  })

  const startHandshake = createHandshakes(server, turnsPerHandshake)
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => socket.destroy())
    admit(socket).catch((error: unknown) => {
      refuse(socket, 'proxy-header', { detail: reasonOf(error) })
    })
  })

  return {
    /** The address of the client at the other end of a socket. */
    addressOf,

    /**
     * Counts the connection of a trusted proxy for the client whose request it carries: a ban of that client ends the
     * connection. Returns a function that ends this. Undefined: the client is banned, or has too many connections. Other
     * connections count for their own address all the time.
     */
    carries(socket: Peer, address: string): (() => void) | undefined {
      const client = clients.get(endsOf(socket))
      if (!client || !isTrustedProxy(client.address)) return () => undefined
      if (bans?.hasAddress(address)) {
        refused('banned', { remoteAddress: address })
        return undefined
      }
      if (client.place.belongsTo(address)) {
        client.carried = address
        return () => {
          client.carried = undefined
          client.place.belongsToNobody()
        }
      }
      refused('max-connections-per-address', { remoteAddress: address })
      return undefined
    },

    /** Frees the place of a connection that another listener counts from now on (MQTT over WebSocket). */
    release: (socket: Peer): void => clients.get(endsOf(socket))?.place.leave(),

    /** Ends every connection at once. */
    destroyAll(): void {
      for (const socket of open) socket.destroy()
    },
  }

  async function admit(socket: Socket): Promise<void> {
    // Takes the place before the first `await`. The limit must also hold for a flood of connections that send nothing.
    const place = bounds.enter()
    if (!place) return refuse(socket, 'max-connections')
    open.add(socket)
    const ends = endsOf(socket)
    socket.once('close', () => {
      open.delete(socket)
      const client = clients.get(ends)
      // Warns only if the client has sent something. A client that sent nothing has just checked that the port is open.
      if (client && !client.isJudged && socket.bytesRead > 0) warn(client.address, closedEarly)
      clients.delete(ends)
      place.leave()
    })
    const own = socket.remoteAddress ?? 'unknown'
    if (proxyProtocol && !isBalancer(own)) throw new Error('the address is none of proxyFrom')
    const address = proxyProtocol ? ((await readProxyHeader(socket)) ?? own) : own
    if (socket.destroyed) return
    if (bans?.hasAddress(address)) return refuse(socket, 'banned', { remoteAddress: address })
    if (!isTrustedProxy(address) && !place.belongsTo(address))
      return refuse(socket, 'max-connections-per-address', { remoteAddress: address })
    clients.set(ends, { address, place, isJudged: false, carried: undefined })
    try {
      // A handshake costs nothing before its ClientHello. Many ClientHellos may arrive in one turn of the event loop:
      // `startHandshake` paces the handshakes.
      await clientHelloArrived(socket, handshakeTimeout)
    } catch (error) {
      return failed(error instanceof Error ? error : new Error(String(error)), socket)
    }
    startHandshake(socket, originOf(address).address)
  }

  function failed(error: Error, socket: Socket): void {
    metrics.connectionsRefused.inc({ reason: 'tls' })
    const client = clients.get(endsOf(socket))
    log.debug({ err: error, remoteAddress: addressOf(socket) }, 'TLS handshake failed')
    // If the socket is closed, its `close` listener has removed the client, and has warned.
    if (client) {
      client.isJudged = true
      warn(client.address, tlsFailureReason(error))
    }
    socket.destroy()
  }

  function refuse(
    socket: Socket,
    reason: RefusedReason,
    about: { remoteAddress?: string; detail?: string } = {},
  ): void {
    refused(reason, { remoteAddress: socket.remoteAddress, ...about })
    socket.destroy()
  }

  function addressOf(socket: Peer): string {
    return clients.get(endsOf(socket))?.address ?? socket.remoteAddress ?? 'unknown'
  }
}

/** Begins one handshake every `turnsPerHandshake` turns of the event loop. Serves client addresses alternately. */
function createHandshakes(server: Server, turnsPerHandshake: number) {
  const shakeHands = takeListeners<[Socket]>(server, 'connection')
  const pacing = createPacing(1, turnsPerHandshake)
  const begin = (socket: Socket) => {
    if (!socket.destroyed) shakeHands?.(socket)
  }
  return (socket: Socket, asker: string): void => {
    const isOver = () => socket.destroyed
    if (pacing.enter(() => begin(socket), { asker, isOver })) begin(socket)
  }
}

/** A key of a connection. It has both ends: a client may use one port towards several addresses of this host. */
function endsOf({ localAddress, localPort, remoteAddress, remotePort }: Peer): string {
  return `${localAddress} ${localPort} ${remoteAddress} ${remotePort}`
}
