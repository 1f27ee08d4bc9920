import { refuse } from '../answer.ts'
import type { Route } from './route.ts'

const dayMs = 24 * 3600 * 1000
/** RFC 9116 §2.5.5 recommends less than a year. */
const validMs = 180 * dayMs

/** The file that tells people whom to write to about a security hole (RFC 9116). */
export function securityRoutes(parts: {
  /** `HUB_SECURITY_CONTACT`. */
  securityContact: string | undefined
  publicUrl: () => string
  clock: () => number
}): Route[] {
  const { securityContact, publicUrl, clock } = parts
  const path = '/.well-known/security.txt'
  return [
    {
      method: 'GET',
      path,
      id: 'securityTxt',
      summary: 'Whom to write to about a security hole',
      tag: 'Operation',
      answers: {
        200: { description: 'The file of RFC 9116', mediaType: 'text/plain' },
        404: '`HUB_SECURITY_CONTACT` is not set',
      },
      handle() {
        if (securityContact === undefined) return refuse(404)
        const expires = new Date(Math.floor((clock() + validMs) / dayMs) * dayMs).toISOString()
        const lines = [
          `Contact: ${securityContact}`,
          `Expires: ${expires}`,
          `Canonical: ${publicUrl()}${path}`,
        ]
        const body = lines.map((line) => `${line}\n`).join('')
        return { status: 200, body, headers: { 'content-type': 'text/plain; charset=utf-8' } }
      },
    },
  ]
}
