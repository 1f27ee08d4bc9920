import { DEFAULT_CIPHERS } from 'node:tls'

/**
 * The TLS settings of all listeners, and of the client for webhooks. They leave out the key exchange over finite fields
 * (DHE). By default OpenSSL takes any such field that the other side names, and one handshake then costs the node up to
 * a second. With the groups listed here a handshake costs 1 to 6 ms.
 */
export const tlsSettings = {
  minVersion: 'TLSv1.2',
  ecdhCurve: 'X25519:P-256:P-384',
  // TLS 1.2 agrees on DHE by the cipher, and not by the group.
  ciphers: `${DEFAULT_CIPHERS}:!kDHE`,
} as const
