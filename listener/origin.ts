import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import { parseAddress } from './networks.ts'

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
  const parsed = parseAddress(text)
  if (!parsed) return { address: text, network: text }
  if (parsed instanceof ipaddr.IPv6) {
    const parts = parsed.parts.map((part) => part.toString(16))
    return {
      address: `${parts.slice(0, 4).join(':')}::/64`,
      network: `${parts.slice(0, 3).join(':')}::/48`,
    }
  }
  return { address: parsed.toString(), network: `${parsed.octets.slice(0, 3).join('.')}.0/24` }
}
