import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr, { type IPv4, type IPv6 } from 'ipaddr.js'
import { isWholeUrl } from '../../event/format.ts'

/** Longest webhook URL, characters. */
export const maxWebhookUrlLength = 2048

/** Longest wait for the answer to one DNS query, milliseconds. */
const dnsTimeoutMs = 2_000

/** All addresses of a name. Empty: there are none, or no name server answered. */
export type Resolve = (name: string) => Promise<readonly string[]>

/**
 * Why a URL is refused for a webhook (design.md §10). Undefined: the URL is accepted. A name that cannot be resolved is
 * accepted too: every connection checks the addresses again.
 */
export async function checkWebhookUrl(
  text: string,
  options: {
    allowPrivate: boolean
    /** URL of the hub, refused for webhooks: `POST /pubsub` would treat events as plugin work. */
    own?: string
    resolve?: Resolve
  },
): Promise<string | undefined> {
  const url = isWholeUrl(text) ? new URL(text) : undefined
  if (!url || text.length > maxWebhookUrlLength) return 'expected an https URL'
  if (options.own && url.origin === new URL(options.own).origin) return 'it is the hub itself'
  const wrong = problemOf(url, options)
  if (wrong !== undefined || options.allowPrivate) return wrong
  const host = hostOf(url)
  if (isIP(host) !== 0) return undefined
  if (!host.includes('.') || privateSuffix.test(host)) return 'the name is not a public one'
  const addresses = await (options.resolve ?? resolvePublicly)(host)
  if (addresses.every(isPublicAddress)) return undefined
  return 'the name leads to an address that is not public'
}

/** Why a URL is refused, without a DNS look-up. Undefined: there is no reason. */
export function problemOf(url: URL, { allowPrivate }: { allowPrivate: boolean }): string | undefined {
  const { protocol, username, password, port } = url
  if (protocol !== 'https:') return `expected https, not ${protocol.slice(0, 20)}`
  if (username !== '' || password !== '') return 'expected no user name and password in it'
  const host = hostOf(url)
  if (!isHostName(host)) return 'expected a host name of at most 253 characters, 63 between dots'
  if (allowPrivate) return undefined
  // Refuse ports below 1024: mail, shells, file servers and the like use them.
  if (port !== '' && Number(port) < 1024) return `expected port 443 or one above 1023, not ${port}`
  return isIP(host) !== 0 && !isPublicAddress(host) ? 'the address is not a public one' : undefined
}

/**
 * Whether a host has a length that DNS allows (RFC 1035 §2.3.4). With a longer host, Node would end an unrelated TLS
 * connection: docs/decisions, "A host name has at most 253 characters".
 */
function isHostName(host: string): boolean {
  return host.length <= 253 && host.split('.').every((label) => label.length > 0 && label.length <= 63)
}

/** Address or name. `URL` has turned every spelling of an IPv4 address into four numbers. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
}

/**
 * Whether an address is on the public internet: not private, loopback, link-local, multicast or reserved. An IPv4 address
 * in an IPv6 address decides, because a translator or a tunnel sends the packets there.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  // `process` turns an IPv4 address in IPv6 form (`::ffff:127.0.0.1`) into IPv4.
  const processed = ipaddr.process(address)
  if (processed instanceof ipaddr.IPv4) return isPublicIPv4(processed)
  const bytes = processed.toByteArray()
  if (isIsatap(bytes) && !isPublicIPv4(ipv4At(bytes, 12, 13, 14, 15))) return false
  for (const { prefix, bits, isPublic } of embeddings) {
    if (processed.match(prefix, bits)) return isPublic(bytes)
  }
  return processed.match(globalUnicast, 3) && processed.range() === 'unicast'
}

function isPublicIPv4(address: IPv4): boolean {
  return address.range() === 'unicast' && address.toString() !== platformAddress
}

/** The IPv6 addresses that hold an IPv4 address, and whether that one is public. */
const embeddings: readonly { prefix: IPv6; bits: number; isPublic(bytes: number[]): boolean }[] = [
  {
    // NAT64: RFC 6052 §2.1
    prefix: ipaddr.IPv6.parse('64:ff9b::'),
    bits: 96,
    isPublic: (bytes) => isPublicIPv4(ipv4At(bytes, 12, 13, 14, 15)),
  },
  {
    // NAT64 within a network: RFC 8215. Usual are the last 32 bits. What a translator reads with a shorter prefix
    // (RFC 6052 §2.2) must be public too, or no address of a host.
    prefix: ipaddr.IPv6.parse('64:ff9b:1::'),
    bits: 48,
    isPublic: (bytes) =>
      isPublicIPv4(ipv4At(bytes, 12, 13, 14, 15)) &&
      [ipv4At(bytes, 6, 7, 9, 10), ipv4At(bytes, 7, 9, 10, 11), ipv4At(bytes, 9, 10, 11, 12)].every(
        (other) => isPublicIPv4(other) || ['unspecified', 'reserved'].includes(other.range()),
      ),
  },
  {
    // 6to4: RFC 3056 §2
    prefix: ipaddr.IPv6.parse('2002::'),
    bits: 16,
    isPublic: (bytes) => isPublicIPv4(ipv4At(bytes, 2, 3, 4, 5)),
  },
  {
    // Teredo: RFC 4380 §4, its server, and its client with all bits inverted
    prefix: ipaddr.IPv6.parse('2001::'),
    bits: 32,
    isPublic: (bytes) => {
      const inverted = bytes.map((byte) => byte ^ 0xff)
      return isPublicIPv4(ipv4At(bytes, 4, 5, 6, 7)) && isPublicIPv4(ipv4At(inverted, 12, 13, 14, 15))
    },
  },
]

/** Whether an address holds an IPv4 address behind a prefix of any network: ISATAP, RFC 5214 §6.1. */
function isIsatap(bytes: readonly number[]): boolean {
  const [universal = 0, ...rest] = bytes.slice(8, 12)
  return (universal & ~0x02) === 0 && rest.join() === '0,94,254'
}

function ipv4At(bytes: readonly number[], ...places: readonly number[]): IPv4 {
  return new ipaddr.IPv4(places.map((place) => bytes[place] ?? 0))
}

/** In Azure, a virtual machine reaches its host here, although the address looks public. */
const platformAddress = '168.63.129.16'

/** Prefix (3 bits) of all assigned IPv6 addresses (RFC 4291 §2.4). `range` says `unicast` for unassigned ones too. */
const globalUnicast = ipaddr.IPv6.parse('2000::')

const privateSuffix = /(^|\.)(localhost|local|internal|lan|home\.arpa)$/

/** Asks name servers: a look-up by the system would occupy a thread that the store needs. */
export async function resolvePublicly(name: string): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: dnsTimeoutMs, tries: 1 })
  const nothing = (): string[] => []
  const found = await Promise.all([
    resolver.resolve4(name).catch(nothing),
    resolver.resolve6(name).catch(nothing),
  ])
  return found.flat()
}
