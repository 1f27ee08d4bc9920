import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { isLivestreamUrn, isWholeUrl } from '../event/format.ts'

/** The checks for texts. The schema of a setting names its check as `format`. */
export const formats = {
  name: /^[A-Za-z0-9._-]{1,64}$/,
  // RFC 6750 §2.1
  bearer: /^[A-Za-z0-9._~+/-]{16,512}=*$/,
  // RFC 9116 §2.5.3: no line break, and no http.
  contact: /^(mailto:[^\s@]+@[^\s@]+|https:\/\/[^\s]+)$/,
  account: /^[^\s@]+@[^\s@]+$/,
  'https-url': (value: string) => hasProtocol(value, 'https:'),
  // Of an address in a list of members: nothing behind the port.
  'node-url': (value: string) => hasProtocol(value, 'https:') && /^https:\/\/[^\s/?#@\\]+$/.test(value),
  'base-url': (value: string) => hasProtocol(value, 'https:') && !/[?#]|^https:\/\/[^/]*@/.test(value),
  'server-url': (value: string) => serverUrl.test(value) && URL.canParse(value),
  'redis-url': isRedisUrl,
  network: isNetwork,
  livestream: isLivestreamUrn,
  feed: (value: string) => !isUrl(value) || isFeedUrl(value),
}

/** http or https, without user, query, fragment and placeholders. */
const serverUrl = /^https?:\/\/[^\s/?#@\\{}]{1,253}(\/[^\s?#\\{}]*)?$/

/** Whether a value is a URL and no path. */
export function isUrl(value: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(value)
}

function hasProtocol(value: string, protocol: string): boolean {
  return isWholeUrl(value) && value.startsWith(`${protocol}//`)
}

/**
 * Whether a text is an address or a network in the form of CIDR. Bits behind the prefix are refused, because 10.0.0.1/8
 * is probably a mistake for 10.0.0.1/32. So is a prefix of 0 bits, which means everybody.
 */
export function isNetwork(value: string): boolean {
  const [address = '', bits = ''] = value.split('/')
  if (isIP(address) === 0 || address.includes('%') || ipaddr.parse(address).range() === 'ipv4Mapped')
    return false
  if (!value.includes('/')) return true
  if (!/^[1-9]\d{0,2}$/.test(bits) || !ipaddr.isValidCIDR(value)) return false
  const family = isIP(address) === 4 ? ipaddr.IPv4 : ipaddr.IPv6
  return family.networkAddressFromCIDR(value).toString() === ipaddr.parse(address).toString()
}

/** Refuses a URL with user and password, because `fetch` accepts neither in a URL. */
function isFeedUrl(value: string): boolean {
  if (!hasProtocol(value, 'https:')) return false
  const { username, password, hostname } = new URL(value)
  return username === '' && password === '' && hostname.length <= 253
}

function isRedisUrl(value: string): boolean {
  if (!hasProtocol(value, 'redis:') && !hasProtocol(value, 'rediss:')) return false
  const { hostname, pathname } = new URL(value)
  return hostname !== '' && /^(\/\d*)?$/.test(pathname)
}
