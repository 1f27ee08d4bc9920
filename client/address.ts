/** Where mqtt.js connects. */
export interface Address {
  protocol: 'mqtts' | 'wss'
  hostname: string
  /** 0: the default of the protocol. */
  port: number
  path: string
}

/**
 * The address of a URL `mqtts://…` or `wss://…`. mqtt.js 5.16 would read it with `url.parse`, of which Node.js 24 warns on
 * stderr, and could not connect to an IPv6 address by `wss://`.
 */
export function addressOf(url: string): Address {
  const { protocol, host, port, pathname, search } = new URL(url)
  const isWebSocket = protocol === 'wss:'
  // Only in URLs of the web, a name becomes ASCII (RFC 5891).
  const { hostname } = new URL(`https://${host}`)
  return {
    protocol: isWebSocket ? 'wss' : 'mqtts',
    // A TLS socket takes an IPv6 address without its brackets.
    hostname: isWebSocket ? hostname : hostname.replace(/^\[|\]$/g, ''),
    port: Number(port),
    path: pathname + search,
  }
}
