import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'

/** The origin of a client. Limits count clients by origin, not by their exact address. */
export interface Origin {
  /** The addresses of one internet access: an IPv4 address, or an IPv6 /64. */
  address: string
  /** The addresses that one provider hands out together: the IPv4 /24, or the IPv6 /48. */
  network: string
}

/** The origin for the address of a socket. A text that is no IP address is its own origin. */
export function originOf(text: string): Origin {
  // Most addresses need no parsing, and each connection asks several times.
  if (isIPv4(text)) return { address: text, network: `${text.slice(0, text.lastIndexOf('.'))}.0/24` }
  // A link-local address has its interface behind it: `fe80::7%eth0`.
  const [bare = ''] = text.split('%', 1)
  if (!ipaddr.isValid(bare)) return { address: text, network: text }
  // `process` turns an IPv4-mapped IPv6 address into the IPv4 address.
  const parsed = ipaddr.process(bare)
  if (parsed instanceof ipaddr.IPv6) {
    const parts = parsed.parts.map((part) => part.toString(16))
    return {
      address: `${parts.slice(0, 4).join(':')}::/64`,
      network: `${parts.slice(0, 3).join(':')}::/48`,
    }
  }
  return { address: parsed.toString(), network: `${parsed.octets.slice(0, 3).join('.')}.0/24` }
}
