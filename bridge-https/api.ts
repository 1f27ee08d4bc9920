import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Server } from 'node:https'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { errorItem, pathOf } from '../event/error.ts'
import { type Answer, httpsError, refuse } from './answer.ts'
import { compileBody } from './body.ts'
import type { Lifecycle } from './lifecycle/lifecycle.ts'
import type { TrackStatus } from './lifecycle/track.ts'
import { createBodyRoom, isShort, type Payload, readPayload } from './payload.ts'
import type { RequestLog } from './request-log.ts'
import { type Call, labelOf, maxBodyBytes, needsToken, type Route } from './routes/route.ts'
import type { Tokens } from './users/tokens.ts'
import type { User } from './users/user.ts'

type App = FastifyInstance<Server, IncomingMessage, ServerResponse, FastifyBaseLogger>

/** Bytes of bodies on their way: of requests with a token, and of those without. */
const maxBodiesBytes = { withToken: 64 * 1024 * 1024, open: 16 * 1024 * 1024 }

/** Unknown parameters that an answer names: it must not be larger than the question. */
const maxNamedParameters = 10

/** Serves the routes with Fastify: life cycle, log-in, body, handler, in this order, each may answer. */
export function serveRoutes(
  app: App,
  routes: readonly Route[],
  parts: {
    lifecycle: Lifecycle
    tokens: Tokens
    requestAnswered: RequestLog
    addressOf: (request: FastifyRequest) => string
  },
): void {
  const { lifecycle, tokens, requestAnswered, addressOf } = parts
  const users = new WeakMap<FastifyRequest, User>()
  const matched = new WeakMap<FastifyRequest, Route>()

  const withToken = createBodyRoom(maxBodiesBytes.withToken)
  const open = createBodyRoom(maxBodiesBytes.open)

  // Bodies are judged by the route: here they are only received.
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
  // Fastify would wait for a body that nobody wants.
  app.addHook('onRequest', async (request, reply) => (request.is404 ? send(reply, refuse(404)) : undefined))
  app.addHook('onSend', async (request, reply) => {
    if (!request.raw.complete && !isShort(request)) reply.header('connection', 'close')
  })
  app.setErrorHandler((error, request, reply) => {
    if (codeOf(error).startsWith('FST_ERR_CTP_')) {
      return send(reply, refuse(400, [httpsError('request.type')]))
    }
    // Of the page of the description: files that are not there, or not for anybody.
    if (isAboutRequest(error)) return send(reply, refuse(404))
    request.log.error({ err: error }, 'request failed')
    return send(reply, refuse(500))
  })
  app.addHook('onResponse', async (request, reply) => {
    const found = matched.get(request)
    requestAnswered(
      {
        reqId: request.id,
        method: request.method,
        url: request.url,
        route: found ? labelOf(found) : null,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        remoteAddress: addressOf(request),
        userId: users.get(request)?.userId,
      },
      // Load balancers and Prometheus ask every few seconds.
      found?.tag === 'Operation' ? 'debug' : 'info',
    )
  })
  for (const route of routes) serve(route)

  function serve(route: Route): void {
    const label = labelOf(route)
    const { track } = route
    const checkBody = route.body && !route.rawBody ? compileBody(route.body) : undefined
    const count = () => {
      if (track) lifecycle.count(track, label)
    }

    app.route({
      method: route.method,
      url: route.path.replace(/\{(\w+)\}/g, ':$1'),

      async onRequest(request, reply) {
        matched.set(request, route)
        const refused =
          retired(reply) ??
          (await authenticate(request)) ??
          unknownParameters(request) ??
          (route.body && compressed(request))
        return refused && send(reply, refused)
      },

      async handler(request, reply) {
        const received = route.body ? bodyOf(request) : { value: undefined }
        if ('refused' in received) return send(reply, received.refused)
        if (route.body && (await isRevoked(request)))
          return send(reply, refuse(403, [httpsError('authorization.invalid')]))
        const call: Call = {
          params: { ...Object(request.params) },
          query: { ...Object(request.query) },
          body: received.value,
          address: addressOf(request),
          at: Date.now(),
          started: performance.now(),
          count,
        }
        return send(reply, await answer(call, users.get(request)))
      },
    })

    /** Before anything else is asked (design.md §9). */
    function retired(reply: FastifyReply): Answer | undefined {
      if (!track) return undefined
      const status = lifecycle.of(track)
      reply.headers(lifecycleHeaders(status))
      return status.state === 'gone' ? refuse(410, undefined, goneMessage(status)) : undefined
    }

    async function authenticate(request: FastifyRequest): Promise<Answer | undefined> {
      if (!needsToken(route)) return undefined
      const token = bearerOf(request.headers.authorization)
      if (token === undefined) return refuse(401, [httpsError('authorization.missing')])
      if (route.permission === undefined) {
        if (!(await route.admits?.(token))) return refuse(403, [httpsError('authorization.invalid')])
        count()
        return undefined
      }
      const user = await tokens.userOf(token)
      if (!user) return refuse(403, [httpsError('authorization.invalid')])
      users.set(request, user)
      count()
      if (user.permissions.includes(route.permission)) return undefined
      return refuse(403, [httpsError('authorization.permission', route.permission)])
    }

    /** A parameter that is misspelled would be ignored, and do harm: with `dryrun=true` an event goes on the air. */
    function unknownParameters({ query }: FastifyRequest): Answer | undefined {
      const { query: known } = route
      if (!known) return undefined
      const unknown = Object.keys(Object(query)).filter((name) => !Object.hasOwn(known, name))
      if (unknown.length === 0) return undefined
      const detail = `expected ${Object.keys(known).join(', ')}`
      const items = unknown.slice(0, maxNamedParameters)
      return refuse(
        400,
        items.map((name) =>
          errorItem('additionalProperties.openapi.validation', pathOf('query', name), detail),
        ),
      )
    }

    /** The body may come long after the header: its user may have been removed meanwhile. */
    async function isRevoked(request: FastifyRequest): Promise<boolean> {
      const token = users.has(request) ? bearerOf(request.headers.authorization) : undefined
      return token !== undefined && (await tokens.userOf(token)) === undefined
    }

    function bodyOf(request: FastifyRequest): { value: unknown } | { refused: Answer } {
      const payload = request.body as Payload | undefined
      if (payload === undefined) return { refused: refuse(400, [httpsError('request.type')]) }
      if ('refused' in payload) return payload
      if (!checkBody) return { value: payload.bytes }
      const checked = checkBody(payload.bytes)
      return 'errors' in checked ? { refused: refuse(400, checked.errors) } : checked
    }

    async function answer(call: Call, user: User | undefined): Promise<Answer> {
      if (route.permission === undefined) return route.handle(call)
      if (!user) throw new Error('a guarded route was reached without a user')
      return route.handle(call, user)
    }
  }
}

/** Sends an answer; texts and bytes as they are, everything else as JSON. */
export function send(reply: FastifyReply, { status, body, headers = {} }: Answer): FastifyReply {
  if (typeof body === 'string') return reply.code(status).headers(headers).send(body)
  return reply
    .code(status)
    .header('content-type', 'application/json; charset=utf-8')
    .headers(headers)
    .serializer(JSON.stringify)
    .send(body)
}

/** RFC 9745, RFC 8594 and RFC 8288. */
function lifecycleHeaders({ state, announcedAt, sunset, link }: TrackStatus): Record<string, string> {
  if (state === 'live' || announcedAt === null || sunset === null) return {}
  return {
    deprecation: `@${Math.floor(Date.parse(announcedAt) / 1000)}`,
    sunset: new Date(sunset).toUTCString(),
    link: `<${link}>; rel="deprecation"; type="text/html", <${link}>; rel="sunset"; type="text/html"`,
  }
}

function goneMessage({ link }: TrackStatus): string {
  return link === null ? 'This part of the API is gone' : `This part of the API is gone, see ${link}`
}

/** RFC 6750 §2.1; undefined for every other kind of authorization. */
function bearerOf(header: string | undefined): string | undefined {
  return /^bearer +([^\s]+) *$/i.exec(header ?? '')?.[1]
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

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
