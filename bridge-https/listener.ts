import { randomUUID } from 'node:crypto'
import type { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Server } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import files from '@fastify/static'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import type { Certificates } from '../certs/certificates.ts'
import type { TicketKeys } from '../certs/ticket-keys.ts'
import type { Bans } from '../listener/bans.ts'
import type { ConnectionBounds } from '../listener/connection-bounds.ts'
import { createNetworks } from '../listener/networks.ts'
import { guardServer, tlsOptions } from '../listener/tls-server.ts'
import { inTimeOr } from '../store/deadline.ts'
import { createRunningWork } from '../store/running-work.ts'
import type { Store } from '../store/store.ts'
import { type Log, logOfOthers } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createRareWarning } from '../telemetry/rare-warning.ts'
import { httpsError, refuse, refuseUntil } from './answer.ts'
import { send, serveRoutes } from './api.ts'
import { keptByNobody } from './caching.ts'
import { crossOriginHeaders } from './cross-origin.ts'
import { streamBusy } from './event-stream.ts'
import { clientOf } from './forwarded.ts'
import { answerKept, type Kept } from './kept.ts'
import type { Lifecycle } from './lifecycle/lifecycle.ts'
import { createRawAnswer, type RawAnswer } from './raw-answer.ts'
import { HubRequest, hasTwoHosts, requestClass } from './request.ts'
import { createRequestLog } from './request-log.ts'
import { createRoundRobin } from './round-robin.ts'
import type { Route } from './routes/route.ts'
import { securityHeaders } from './security-headers.ts'
import type { Readers } from './users/readers.ts'
import type { Tokens } from './users/tokens.ts'
import { createWebSocketDoor } from './websocket.ts'

/** Bounds of one connection and one request, milliseconds and bytes. */
const usualLimits = {
  headersMs: 10_000,
  /** From the first byte of a request to the last byte of its body. */
  requestMs: 30_000,
  keepAliveMs: 65_000,
  /** Longest time without a byte in either direction while an answer is due. Then the connection ends. */
  stalledMs: 60_000,
  headerBytes: 16 * 1024,
  /** Time between two checks for slow requests. */
  checkMs: 1_000,
}
/** How long requests may take to finish when the hub stops, milliseconds. */
const drainMs = 5_000
/** Seconds after which a client with too many connections through a trusted proxy may try again. */
const busySeconds = 5

/**
 * Serves the HTTPS API and MQTT over WebSocket on one port, with TLS 1.2 or later. Resolves when the port accepts
 * connections.
 */
export async function listenHttps(parts: {
  host: string
  port: number
  certificates: Certificates
  tickets: TicketKeys
  /** Bounds of HTTPS connections. A connection that becomes MQTT over WebSocket no longer counts here. */
  bounds: ConnectionBounds
  /** Bounds of MQTT connections, over TCP and over WebSocket. */
  mqttBounds: ConnectionBounds
  /** Who may not connect. Absent: everybody may. */
  bans?: Pick<Bans, 'hasAddress' | 'onBanned'>
  proxyProtocol: boolean
  proxyFrom: readonly string[]
  /** The networks of proxies whose headers say who the client is. */
  trustedProxies: readonly string[]
  /** Tells browsers to use only https for this host from now on (header Strict-Transport-Security). */
  strictTransport: boolean
  routes: readonly Route[]
  /** The API description. */
  openapi: () => Kept
  lifecycle: Lifecycle
  tokens: Tokens
  /** Absent: no reader is let in. */
  readers?: Readers
  /** For limits that all nodes count together. Absent: there are no other nodes. */
  store?: Store
  /** Takes over the byte stream of MQTT over WebSocket. */
  accept: (stream: Duplex, remoteAddress: string) => void
  limits?: Partial<typeof usualLimits>
  maxPacket: number
  maxConnectPacket: number
  log: Log
  metrics: Metrics
}) {
  const { certificates, routes, openapi, log } = parts
  const limits = { ...usualLimits, ...parts.limits }
  const requestAnswered = createRequestLog(parts)
  const answerRaw = createRawAnswer(requestAnswered)
  const loggerInstance: FastifyBaseLogger = logOfOthers(log)
  const app = Fastify<Server>({
    loggerInstance,
    genReqId: () => randomUUID(),
    // A request gets one log line, when it is answered.
    logController: new LogController({ disableRequestLogging: true }),
    // A stopping node still answers.
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionTimeout: limits.stalledMs,
    // Long names must reach their route, which judges them.
    routerOptions: { maxParamLength: limits.headerBytes },
    https: {
      ...tlsOptions({ certificates, tickets: parts.tickets }),
      IncomingMessage: requestClass(routes),
      // `curl --http1.0` offers nothing else. Node's default has no `http/1.0`, and ends the handshake.
      ALPNProtocols: ['http/1.1', 'http/1.0'],
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersMs,
      connectionsCheckingInterval: limits.checkMs,
      // A request without Host is answered like every other: old clients may send none.
      requireHostHeader: false,
    },
    clientErrorHandler: (error, socket) => refuseBroken(error, socket),
    // A path that cannot be decoded names no route. Fastify would call no hooks for the request.
    rewriteUrl: ({ url = '' }) => (isDecodable(url) ? url : nowhere),
  })
  const server: Server = app.server
  // By default Node drops all header fields after the first 1,000: a client could hide what its proxy adds at the end.
  server.maxHeadersCount = 0
  const roundRobin = createRoundRobin(server)
  // The MQTT port has `turnsPerHandshake` 2. Here, 2 doubled the memory of bodies in tiny pieces (`npm run bench --
  // attacks`).
  const isTrustedProxy = createNetworks(parts.trustedProxies)
  const guard = guardServer(server, { ...parts, isTrustedProxy, turnsPerHandshake: 1 })
  const addressOfRaw = createClientAddresses({ guard, isTrustedProxy, log })
  const addressOf = ({ raw }: FastifyRequest) => addressOfRaw(raw)
  const door = createWebSocketDoor({ ...parts, bounds: parts.mqttBounds, answerRaw })
  takeOtherRequests(server, { roundRobin, guard, addressOfRaw, door, answerRaw })

  const security = securityHeaders(parts)
  const underWay = createRunningWork()
  // Hooks with a callback: each asynchronous one would cost every request a promise.
  app.addHook('onRequest', (request, reply, done) => {
    const exchange = lasting(request, reply)
    underWay.begin()
    // Unlike `finish`, `close` also comes when the client has closed the connection early.
    exchange.on('close', underWay.end)
    reply.headers(security)
    reply.headers(keptByNobody)
    reply.header('x-request-id', request.id)
    const { crossOrigin, isStream } = request.routeOptions.config
    // Before the first refusal: a page of another origin reads nothing of an answer without them, not even its status.
    if (crossOrigin) reply.headers(crossOriginHeaders)
    const end = guard.carries(request.raw.socket, addressOf(request))
    if (!end) return void send(reply, isStream ? streamBusy : refuseUntil(503, busySeconds))
    exchange.on('close', end)
    if (hasTwoHosts(request.raw)) void send(reply, refuse(400, [httpsError('request.form', twoHosts)]))
    else done()
  })
  await serveDescription(app, openapi)
  // For answers with `file`. The plugin itself serves no paths. It would make validators from the size and the time of a
  // file. In an image, the pages of two releases have the same size and time: npm packs all files with one time.
  await app.register(files, {
    serve: false,
    preCompressed: true,
    cacheControl: false,
    etag: false,
    lastModified: false,
    // The plugin's 416 came out as 404. All files are small: Range is ignored, as everywhere else (RFC 9110 §14.2).
    acceptRanges: false,
  })
  serveRoutes(app, routes, { ...parts, requestAnswered, addressOf })
  await app.listen({ host: parts.host, port: parts.port, listenTextResolver: () => 'HTTPS listener accepts' })
  const address = server.address()
  let closed: Promise<void> | undefined

  return {
    port: typeof address === 'object' && address ? address.port : parts.port,

    /** Stops accepting connections. Resolves when the requests under way are answered, or `drainMs` have passed. */
    async stop(): Promise<void> {
      closed ??= app.close()
      await inTimeOr(underWay.ended(), drainMs, undefined)
    },

    /** Ends the remaining connections, MQTT over WebSocket included. */
    async close(): Promise<void> {
      guard.destroyAll()
      await closed
    },
  }

  /** Answers bytes that Node could not read as a request. */
  function refuseBroken({ code: reason = '' }: NodeJS.ErrnoException, socket: Socket): void {
    const status = statusOfBroken(reason)
    const errors = status === 400 ? { errors: [httpsError('request.form')] } : {}
    if (status) answerRaw(socket, status, { remoteAddress: guard.addressOf(socket), reason, ...errors })
    else socket.destroy()
  }
}

/** Closes when a request has ended: the response, or the socket of a stream, which outlasts its response. */
function lasting({ raw }: FastifyRequest, reply: FastifyReply): EventEmitter {
  return raw instanceof HubRequest && raw.isLast ? raw.socket : reply.raw
}

const twoHosts = 'expected the header Host once'

/** Names no route. */
const nowhere = '/-'

function isDecodable(url: string): boolean {
  try {
    // Like the router: a query may be anything.
    decodeURI(url.replace(/[?#].*/s, ''))
    return true
  } catch {
    return false
  }
}

/** Handles the requests for which Node emits another event than `request`. */
function takeOtherRequests(
  server: Server,
  parts: {
    roundRobin: ReturnType<typeof createRoundRobin>
    guard: ReturnType<typeof guardServer>
    addressOfRaw: (request: IncomingMessage) => string
    door: ReturnType<typeof createWebSocketDoor>
    answerRaw: RawAnswer
  },
): void {
  const { roundRobin, guard, addressOfRaw, door, answerRaw } = parts
  // Node itself would answer `Expect` values other than 100-continue, without the API's error envelope.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('connect', (request, socket: TLSSocket) => void refuseConnect(request, socket))
  server.on('upgrade', (request, socket: TLSSocket, head) => {
    if (request instanceof HubRequest && request.isLast) {
      // Behind an unfinished body, this is no socket from Node 26 on, but hands on the errors of `request.socket`.
      socket.on('error', () => socket.destroy())
      return roundRobin.serveLast(request)
    }
    void upgrade(request, socket, head)
  })

  async function refuseConnect(request: IncomingMessage, socket: TLSSocket): Promise<void> {
    socket.on('error', () => socket.destroy())
    // Node has freed the parser: what stands behind the request must not reach it.
    await roundRobin.leave(request.socket)
    answerRaw(socket, 404, { request, remoteAddress: addressOfRaw(request) })
  }

  async function upgrade(request: IncomingMessage, socket: TLSSocket, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy())
    // Behind an unfinished body, `socket` is none from Node 26 on. No function here may keep `request`.
    const { socket: connection } = request
    const bytes = Buffer.concat([head, await roundRobin.leave(connection)])
    // It may have ended with the answer before: a place for it would never be free again.
    if (connection.destroyed) return
    const remoteAddress = addressOfRaw(request)
    // For good: the connection carries nothing else from now on.
    if (!guard.carries(connection, remoteAddress)) return answerRaw(socket, 503, { request, remoteAddress })
    if (hasTwoHosts(request)) {
      const errors = [httpsError('request.form', twoHosts)]
      return answerRaw(socket, 400, { request, remoteAddress, errors })
    }
    door.upgrade(request, socket, bytes, remoteAddress, () => guard.release(connection))
  }
}

/** The addresses of clients, also behind trusted proxies. The address of a request never changes. */
function createClientAddresses(parts: {
  guard: ReturnType<typeof guardServer>
  isTrustedProxy: (address: string) => boolean
  log: Log
}) {
  const { guard, isTrustedProxy, log } = parts
  const known = new WeakMap<IncomingMessage, string>()
  const warnOfDoubt = createRareWarning(log, 'the headers of a proxy contradict each other')
  return (request: IncomingMessage): string => {
    const found = known.get(request)
    if (found !== undefined) return found
    const { address, isDoubtful } = clientOf(request, guard.addressOf(request.socket), isTrustedProxy)
    if (isDoubtful) warnOfDoubt(address, { remoteAddress: address })
    known.set(request, address)
    return address
  }
}

function statusOfBroken(reason: string): 431 | 408 | 400 | undefined {
  if (reason === 'HPE_HEADER_OVERFLOW') return 431
  if (reason === 'ERR_HTTP_REQUEST_TIMEOUT') return 408
  return reason.startsWith('HPE_') ? 400 : undefined
}

/** Serves the page of the API description. */
async function serveDescription(app: FastifyInstance<Server>, openapi: () => Kept): Promise<void> {
  // The plugin would turn a real document into text for each request. `answerDocument` sends the kept text.
  await app.register(swagger, { mode: 'static', specification: { document: emptyDocument } })
  await app.register(async (docs) => {
    // The plugin's 416 came out as 404. Files come whole, as those of all pages (RFC 9110 §14.2).
    docs.addHook('onRequest', async ({ raw }) => void delete raw.headers.range)
    await docs.register(swaggerUi, {
      routePrefix: '/docs',
      theme: { title: 'API of the now-playing hub' },
      uiConfig: { validatorUrl: null },
      uiHooks: { onRequest: answerDocument },
    })
  })

  async function answerDocument(
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply | undefined> {
    const { url } = request.routeOptions
    // The script of the page takes the address of the page for a folder. `.`: a proxy may serve the hub below a path.
    if (url === '/docs' && request.url !== '/docs/')
      return reply.redirect(request.url.startsWith('/docs/') ? './' : 'docs/')
    if (url === '/docs/static/index.html') return reply.redirect('../')
    if (url === '/docs/json')
      return send(
        reply,
        answerKept(openapi(), () => undefined),
      )
    return url === '/docs/yaml' ? send(reply, refuse(404)) : undefined
  }
}

const emptyDocument = { openapi: '3.1.0', info: { title: '', version: '' }, paths: {} }
