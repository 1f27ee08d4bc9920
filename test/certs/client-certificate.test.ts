import type { TLSSocket } from 'node:tls'
import t from 'tap'
import { clientCertificateOf, sessionsOf } from '../../certs/client-certificate.ts'

const certificate = {
  subject: { CN: 'pub-a' },
  valid_from: 'Jan  1 00:00:00 2026 GMT',
  valid_to: 'Jan 31 00:00:00 2026 GMT',
}
const socketWith = (certificate: object) =>
  ({ authorized: true, getPeerCertificate: () => certificate }) as unknown as TLSSocket
const at = (day: string) => Date.parse(`2026-${day}T12:00:00Z`)

t.test(
  'OpenSSL checks no dates when it resumes a session: a certificate that has expired since names nobody',
  async (t) => {
    const socket = socketWith(certificate)
    t.same(clientCertificateOf(socket, at('01-30')), { username: 'pub-a' })
    t.match(clientCertificateOf(socket, at('02-01')), { problem: /valid from Jan .* to Jan 31/ })
    t.match(clientCertificateOf(socket, Date.parse('2025-12-31T12:00:00Z')), { problem: /valid from/ })
  },
)

t.test(
  'a client without certificate has none, although Node calls its resumed session authorized',
  async (t) => {
    t.equal(clientCertificateOf(socketWith({}), at('01-30')), undefined)
  },
)

t.test('a certificate that the CA has not signed names nobody', async (t) => {
  const socket = Object.assign(socketWith(certificate), {
    authorized: false,
    authorizationError: 'UNTRUSTED',
  })
  t.same(clientCertificateOf(socket, at('01-30')), { problem: 'UNTRUSTED' })
})

t.test('the sessions of each CA have a name of their own, as long as OpenSSL allows', async (t) => {
  t.not(sessionsOf('one'), sessionsOf('two'))
  t.ok(Buffer.byteLength(sessionsOf('one')) <= 32)
})
