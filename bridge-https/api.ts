import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Server } from 'node:https'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { errorItem, pathOf } from '../event/error.ts'
import { createHalfReceived, type HalfReceived } from '../listener/half-received.ts'
import { caughtUp } from '../store/caught-up.ts'
import type { Store } from '../store/store.ts'
import type { Log } from '../telemetry/log.ts'
import { codeOf } from '../telemetry/reason.ts'
import { type Asker, createAdmission } from './admission.ts'
import { type Answer, httpsError, refuse, refuseUntil } from './answer.ts'
import { compileBody } from './body.ts'
import { preflights } from './cross-origin.ts'
import type { Lifecycle } from './lifecycle/lifecycle.ts'
import type { TrackStatus } from './lifecycle/track.ts'
import { createBodyRoom, isShort, type Payload, readPayload } from './payload.ts'
import { inPieces, pieceBytes } from './pieces.ts'
import { HubRequest } from './request.ts'
import type { RequestLog } from './request-log.ts'
import { type Call, labelOf, maxBodyBytes, needsToken, type Route } from './routes/route.ts'
import type { Readers } from './users/readers.ts'
import { createStrangers } from './users/strangers.ts'
import type { Tokens } from './users/tokens.ts'
import type { User } from './users/user.ts'
import type { KnownUser } from './users/users.ts'

type App = FastifyInstance<Server, IncomingMessage, ServerResponse, FastifyBaseLogger>

/** Maximum size of all half-received bodies together, bytes. `open`: on routes that need no token. */
const maxBodiesBytes = { withToken: 64 * 1024 * 1024, open: 16 * 1024 * 1024 }

/**
 * Maximum size of all unread answers together, bytes. Above this size, the connections of the oldest answers end:
 * docs/decisions, "Unread answers are bounded together".
 */
const maxUnreadBytes = 64 * 1024 * 1024

/** How long caches may keep a file whose name changes with its content. */
const forever = { cacheControl: true, maxAge: 365 * 24 * 3600 * 1000, immutable: true }

/** Load balancers, Prometheus and readers ask these routes every few seconds. At `info` they would fill the log. */
const quietTags = new Set(['Operation', 'On air'])

/** Maximum number of unknown parameters that an answer names, which keeps the answer short. */
const maxNamedParameters = 10

/**
 * Serves the routes with Fastify. The checks come in this order: retirement of the route, token, query parameters,
 * encoding, body.
 */
export function serveRoutes(
  app: App,
  routes: readonly Route[],
  parts: {
    lifecycle: Lifecycle
    tokens: Tokens
    /** Absent: no reader is let in. */
    readers?: Readers
    store?: Store
    requestAnswered: RequestLog
    addressOf: (request: FastifyRequest) => string
  },
): void {
  const { lifecycle, tokens, readers, store, requestAnswered, addressOf } = parts
  const admission = createAdmission({ tokens, readers, strangers: createStrangers(parts) })
  const askers = new WeakMap<FastifyRequest, Asker>()
  const matched = new WeakMap<FastifyRequest, Route>()
  const withToken = createBodyRoom(maxBodiesBytes.withToken)
  const open = createBodyRoom(maxBodiesBytes.open)
  const unread = createHalfReceived(maxUnreadBytes, 0)

  // These parsers receive the bytes. The schemas of the route check the body later.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', (request: FastifyRequest, stream: IncomingMessage) => {
    const route = matched.get(request)
    const halfReceived = route && needsToken(route) ? withToken : open
    return readPayload(stream, route ? maxBodyBytes(route) : 0, halfReceived)
  })
  app.addContentTypeParser('*', async (_request: FastifyRequest, stream: IncomingMessage) => {
    stream.resume()
    return { refused: refuse(400, [httpsError('request.type')]) } satisfies Payload
  })
  app.setNotFoundHandler((_request, reply) => send(reply, refuse(404)))
  // Without this hook, Fastify would receive a body even where there is no route.
  app.addHook('onRequest', (request, reply, done) => {
    if (request.is404) send(reply, refuse(404))
    else done()
  })
  app.addHook('onSend', (request, reply, _payload, done) => {
    if (!request.raw.complete && !isShort(request)) reply.header('connection', 'close')
    done()
  })
  app.setErrorHandler((error, request, reply) => {
    if (codeOf(error).startsWith('FST_ERR_CTP_')) {
      return send(reply, refuse(400, [httpsError('request.type')]))
    }
    // Errors of the description page: files that are missing, or not public.
    if (isAboutRequest(error)) return send(reply, refuse(404))
    const log: Pick<Log, 'error'> = request.log
    log.error({ err: error }, 'request failed')
    return send(reply, refuse(500))
  })
  app.addHook('onResponse', (request, reply, done) => {
    const found = matched.get(request)
    requestAnswered(
      {
        reqId: request.id,
        method: request.method,
        url: request.originalUrl,
        route: found ? labelOf(found) : null,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        remoteAddress: addressOf(request),
        userId: askers.get(request)?.user?.userId,
      },
      quietTags.has(found?.tag ?? '') ? 'debug' : 'info',
    )
    done()
  })
  for (const route of [...routes, ...preflights(routes)]) serve(route)

  function serve(route: Route): void {
    const label = labelOf(route)
    const { track } = route
    const checkBody = route.body && !route.rawBody ? compileBody(route.body) : undefined
    const count = (user?: User) => {
      if (track) lifecycle.count(track, label, user)
    }

    app.route({
      method: route.method,
      url: route.path.replace(/\{(\w+)\}/g, ':$1'),
      config: { crossOrigin: route.crossOrigin === true, isStream: route.isStream === true },

      async onRequest(request, reply) {
        matched.set(request, route)
        const refused =
          retired(route, lifecycle, reply) ??
          (await authenticate(request)) ??
          unknownParameters(route.query, request.query) ??
          (route.body && compressed(request))
        return refused && send(reply, refused)
      },

      async handler(request, reply) {
        const received = route.body ? bodyOf(request, route, checkBody) : { value: undefined }
        if ('refused' in received) return send(reply, received.refused)
        const asker = askers.get(request)
        if (!asker) throw new Error('a request was not authenticated')
        const { user, filters, holder, expiresAt, isStillUser } = asker
        // The user may have been removed while the body arrived.
        if (route.body && !(await isStillUser()))
          return send(reply, refuse(403, [httpsError('authorization.invalid')]))
        const call: Call = {
          params: { ...Object(request.params) },
          query: { ...Object(request.query) },
          header: (name) =>
            name === 'cookie' && route.crossOrigin ? undefined : [request.headers[name]].flat()[0],
          body: received.value,
          address: addressOf(request),
          at: Date.now(),
          started: performance.now(),
          count,
          filters,
          holder,
          expiresAt,
          isStillUser,
        }
        const first = await answer(route, call, user)
        // Another node may have made it a moment ago. An answer 404 has changed nothing.
        const isMissed = first.status === 404 && user !== undefined && store && (await caughtUp(store))
        return send(reply, isMissed ? await answer(route, call, user) : first, unread)
      },
    })

    async function authenticate(request: FastifyRequest): Promise<Answer | undefined> {
      const admitted = await admission(route, request.headers.authorization, addressOf(request))
      if (!admitted.asker) return admitted.refused
      askers.set(request, admitted.asker)
      if (admitted.isCounted) count(admitted.asker.user)
      return admitted.refused
    }
  }
}

/** The answer of a route that is retired or switched off. This check comes first (design.md §9). */
function retired(
  { track, staysOnInBrownout }: Route,
  lifecycle: Lifecycle,
  reply: FastifyReply,
): Answer | undefined {
  if (!track) return undefined
  const status = lifecycle.of(track)
  reply.headers(lifecycleHeaders(status))
  const secondsOff = staysOnInBrownout ? undefined : lifecycle.secondsOff(track)
  if (secondsOff !== undefined) return refuseUntil(503, secondsOff, brownoutMessage(status))
  return status.state === 'gone' ? refuse(410, undefined, goneMessage(status)) : undefined
}

/** A misspelled `dryrun=true` must not be ignored: the event would go on the air. */
function unknownParameters(known: Route['query'], query: unknown): Answer | undefined {
  if (!known) return undefined
  const unknown = Object.keys(Object(query)).filter((name) => !Object.hasOwn(known, name))
  if (unknown.length === 0) return undefined
  const detail = `expected ${Object.keys(known).join(', ')}`
  const items = unknown.slice(0, maxNamedParameters)
  return refuse(
    400,
    items.map((name) => errorItem('additionalProperties.openapi.validation', pathOf('query', name), detail)),
  )
}

const emptyObject = Buffer.from('{}')

function bodyOf(
  request: FastifyRequest,
  { mayLackBody }: Route,
  check: ReturnType<typeof compileBody> | undefined,
): { value: unknown } | { refused: Answer } {
  const payload = request.body as Payload | undefined
  const isAbsent = payload === undefined || ('bytes' in payload && payload.bytes.length === 0)
  const given = isAbsent && mayLackBody ? { bytes: emptyObject } : payload
  if (given === undefined) return { refused: refuse(400, [httpsError('request.type')]) }
  if ('refused' in given) return given
  if (!check) return { value: given.bytes }
  const checked = check(given.bytes)
  return 'errors' in checked ? { refused: refuse(400, checked.errors) } : checked
}

async function answer(route: Route, call: Call, user: KnownUser | undefined): Promise<Answer> {
  if (route.permission === undefined) return route.handle(call)
  if (!user) throw new Error('a guarded route was reached without a user')
  return route.handle(call, user)
}

/**
 * Sends an answer. `unread` counts a long body until the client has read that body. A Buffer does not count, because
 * many answers share it.
 */
export function send(
  reply: FastifyReply,
  { status, body, headers = {}, file, stream }: Answer,
  unread?: HalfReceived,
): FastifyReply {
  if (stream) return sendStream(reply, headers, stream)
  if (file) {
    const { name, directory, isForever = false } = file
    return reply
      .code(status)
      .headers(headers)
      .sendFile(name, directory, isForever ? forever : {})
  }
  reply.code(status)
  if (typeof body !== 'string') reply.header('content-type', 'application/json; charset=utf-8')
  reply.headers(headers)
  const isMade = body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
  const whole = isMade ? body : JSON.stringify(body)
  // Fastify sends a HEAD without a body `Content-Length: 0`, which a 304 must not say of the document (RFC 9110 §8.6).
  if (whole === undefined && reply.request.method === 'HEAD') return reply.send(inPieces(Buffer.alloc(0)))
  if (whole === undefined || Buffer.byteLength(whole) <= pieceBytes) return reply.send(whole)
  const bytes = Buffer.isBuffer(whole) ? whole : Buffer.from(whole)
  const pieces = inPieces(bytes)
  if (unread && bytes !== whole) {
    const held = unread.countBytes(() => reply.raw.destroy())
    held.grow(bytes.length)
    pieces.once('close', held.free)
  }
  return reply.header('content-length', bytes.length).send(pieces)
}

/**
 * Begins a stream, which ends with its connection. It is not chunked (RFC 9112 §6.3, rule 8), so that all readers of an
 * event get the same bytes. Behind the headers, the stream has the connection for itself: thousands may be open.
 */
function sendStream(
  reply: FastifyReply,
  headers: Record<string, string>,
  stream: NonNullable<Answer['stream']>,
): FastifyReply {
  const { method, raw: request } = reply.request
  // The path of the route, spelled in a way that only the router knows: Node still reads requests on the connection.
  if (method !== 'HEAD' && !(request instanceof HubRequest && request.isLast)) return send(reply, refuse(404))
  const { raw } = reply.hijack()
  raw.useChunkedEncodingByDefault = false
  raw.shouldKeepAlive = false
  for (const [name, value] of Object.entries({ ...reply.getHeaders(), ...headers }))
    if (value !== undefined) raw.setHeader(name, value)
  const { socket } = raw
  raw.writeHead(200).end()
  if (method === 'HEAD' || !socket) return reply
  raw.detachSocket(socket)
  stream(socket)
  return reply
}

/** The headers Deprecation (RFC 9745), Sunset (RFC 8594) and Link (RFC 8288). */
function lifecycleHeaders({ state, announcedAt, sunset, link }: TrackStatus): Record<string, string> {
  if (state === 'live' || announcedAt === null || sunset === null) return {}
  return {
    deprecation: `@${Math.floor(Date.parse(announcedAt) / 1000)}`,
    sunset: new Date(sunset).toUTCString(),
    link: `<${link}>; rel="deprecation"; type="text/html", <${link}>; rel="sunset"; type="text/html"`,
  }
}

function brownoutMessage({ brownoutUntil, sunset, link }: TrackStatus): string {
  return `Switched off until ${brownoutUntil}, as notice: this part of the API may go from ${sunset} on, see ${link}`
}

function goneMessage({ link }: TrackStatus): string {
  return link === null ? 'This part of the API is gone' : `This part of the API is gone, see ${link}`
}

function compressed({ headers }: FastifyRequest): Answer | undefined {
  const encoding = headers['content-encoding']?.toLowerCase()
  if (encoding === undefined || encoding === 'identity') return undefined
  return refuse(400, [httpsError('request.encoding')])
}

function isAboutRequest(error: unknown): boolean {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500
  return status >= 400 && status < 500
}
