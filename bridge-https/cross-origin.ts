import { refuse } from './answer.ts'
import type { Route } from './routes/route.ts'

/**
 * Headers of every answer of a route with `crossOrigin`, errors included (CORS, open.md §4). Never
 * `Access-Control-Allow-Credentials`: a page shows a token, and browsers send no cookies along.
 */
export const crossOriginHeaders = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'etag, retry-after',
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** `crossOrigin` of the route, for hooks that run before those of the route. */
    crossOrigin?: boolean
    /** `isStream` of the route, likewise. */
    isStream?: boolean
  }
}

/** The headers that pages may send. */
const allowedHeaders = 'authorization, content-type, last-event-id, if-none-match'
/** How long browsers may remember the answer, seconds. Chromium remembers it for two hours at most. */
const maxAge = 7200

/** The routes that answer what browsers ask before a request of another origin: one for each path. */
export function preflights(routes: readonly Route[]): Route[] {
  const methods = new Map<string, string[]>()
  for (const { crossOrigin, path, method } of routes)
    if (crossOrigin) methods.set(path, [...(methods.get(path) ?? []), method])
  return [...methods].map(([path, allowed]) => ({
    method: 'OPTIONS',
    path,
    id: `preflight ${path}`,
    summary: 'What pages of other origins may ask',
    tag: 'Pages',
    crossOrigin: true,
    answers: { 204: { description: 'They may' } },
    handle({ header }) {
      // Any other OPTIONS is a wrong method (design.md §9).
      if (header('access-control-request-method') === undefined) return refuse(404)
      return {
        status: 204,
        body: undefined,
        headers: {
          'access-control-allow-methods': allowed.join(', '),
          'access-control-allow-headers': allowedHeaders,
          'access-control-max-age': String(maxAge),
        },
      }
    },
  }))
}
