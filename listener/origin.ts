import ipaddr from 'ipaddr.js'

/** Where somebody comes from, as limits count it. */
export interface Origin {
  /** What one subscriber line has: an IPv4 address, or an IPv6 /64. */
  address: string
  /** What one provider hands out together: the IPv4 /24, or the IPv6 /48. */
  network: string
}

/** An address of a socket as an origin; what is no address stands for itself. */
export function originOf(text: string): Origin {
  if (!ipaddr.isValid(text)) return { address: text, network: text }
  // `process` turns an IPv4 address in IPv6 clothes into what it is.
  const parsed = ipaddr.process(text)
  if (parsed instanceof ipaddr.IPv6) {
    const parts = parsed.parts.map((part) => part.toString(16))
    return {
      address: `${parts.slice(0, 4).join(':')}::/64`,
      network: `${parts.slice(0, 3).join(':')}::/48`,
    }
  }
  return { address: parsed.toString(), network: `${parsed.octets.slice(0, 3).join('.')}.0/24` }
}
