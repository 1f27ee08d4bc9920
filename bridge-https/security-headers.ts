import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import helmet from 'helmet'

/** Pages load only scripts and styles of the hub. The page of the API description also needs inline styles. */
const policy = {
  'default-src': ["'none'"],
  'script-src': ["'self'"],
  'style-src': ["'self'", "'unsafe-inline'"],
  'img-src': ["'self'", 'data:'],
  'connect-src': ["'self'"],
  'form-action': ["'self'"],
  'base-uri': ["'none'"],
  'frame-ancestors': ["'none'"],
}

/**
 * The headers of every answer that tell browsers what a page may do. They are always the same, and made once.
 * `strictTransport`: browsers use only https for this host from now on (header Strict-Transport-Security).
 */
export function securityHeaders({ strictTransport }: { strictTransport: boolean }): Record<string, string> {
  const request = new IncomingMessage(new Socket())
  const response = new ServerResponse(request)
  const setHeaders = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: policy },
    // Not for sub-domains: a stream at http://stream.<host> must go on.
    strictTransportSecurity: strictTransport && { maxAge: 31_536_000, includeSubDomains: false },
    crossOriginResourcePolicy: { policy: 'same-origin' },
    referrerPolicy: { policy: 'no-referrer' },
  })
  setHeaders(request, response, () => undefined)
  return Object.fromEntries(
    Object.entries(response.getHeaders()).map(([name, value]) => [name, String(value)]),
  )
}
