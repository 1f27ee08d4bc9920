/** Reads a URL. Undefined: the text is none. `URL.canParse` is missing in Safari 16 and Chrome 119. */
export function readUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}

/**
 * Where mqtt.js connects for a URL `mqtts://…` or `wss://…`. From the URL itself, mqtt.js 5.16 reads no IPv6 address of
 * `wss://`, and it uses `url.parse`, of which Node.js 24 warns on stderr.
 */
export function addressOf(url: string) {
  const { protocol, host, port, pathname, search } = new URL(url)
  const isWebSocket = protocol === 'wss:'
  // Only in URLs of the web, a name becomes ASCII (RFC 5891).
  const { hostname } = new URL(`https://${host}`)
  return {
    protocol: isWebSocket ? ('wss' as const) : ('mqtts' as const),
    // A TLS socket takes an IPv6 address without its brackets.
    hostname: isWebSocket ? hostname : hostname.replace(/^\[|\]$/g, ''),
    // 0: the default of the protocol.
    port: Number(port),
    path: pathname + search,
  }
}
