import { DEFAULT_CIPHERS } from 'node:tls'

/**
 * The TLS settings of all listeners, and of the client for webhooks. They leave out key exchange over finite fields
 * (DHE): the other side could choose a field that costs the node up to a second per handshake (docs/decisions,
 * "Handshakes use X25519, P-256 and P-384").
 */
export const tlsSettings = {
  minVersion: 'TLSv1.2',
  ecdhCurve: 'X25519:P-256:P-384',
  // TLS 1.2 agrees on DHE by the cipher, and not by the group.
  ciphers: `${DEFAULT_CIPHERS}:!kDHE`,
} as const
