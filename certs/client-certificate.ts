import { createHash } from 'node:crypto'
import type { TLSSocket } from 'node:tls'

/** What the certificate of a client says: the credential that it names, or why it names none. */
export type ClientCertificate = { username: string } | { problem: string }

/** The CA that signs the certificates of clients (`HUB_CLIENT_CA`). */
export interface ClientCa {
  /** PEM. */
  current(): string
  /** Calls back when the file was replaced. */
  onChange(listener: () => void): void
}

/**
 * The certificate with which a client has begun its TLS session. Undefined: it has none. The session may be resumed: its
 * certificate was checked when the session began, by the CA of today (`sessionsOf`), but it may have expired since.
 */
export function clientCertificateOf(socket: TLSSocket, now: number): ClientCertificate | undefined {
  const certificate = socket.getPeerCertificate()
  // `authorized` alone says nothing: it is true for some resumed sessions without a certificate.
  if (Object.keys(certificate ?? {}).length === 0) return undefined
  if (!socket.authorized) return { problem: String(socket.authorizationError) }
  const { subject, valid_from, valid_to } = certificate
  if (!(Date.parse(valid_from) <= now && now < Date.parse(valid_to)))
    return { problem: `it is valid from ${valid_from} to ${valid_to}` }
  const names: unknown = subject?.CN
  if (typeof names !== 'string') return { problem: 'its subject must have one common name (CN)' }
  return { username: names }
}

/**
 * The name for the TLS sessions of a server with this client CA. OpenSSL resumes no session of another name, so that a
 * replaced CA is asked about each client.
 */
export function sessionsOf(clientCa: string): string {
  return `hub ${createHash('sha256').update(clientCa).digest('base64url').slice(0, 22)}`
}
