import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

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
  const url = URL.canParse(text) ? new URL(text) : undefined
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
 * connection: docs/decisions.md, "A host name has at most 253 characters".
 */
function isHostName(host: string): boolean {
  return host.length <= 253 && host.split('.').every((label) => label.length > 0 && label.length <= 63)
}

/** Address or name. `URL` has turned every spelling of an IPv4 address into four numbers. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
}

/** Whether an address is on the public internet: not private, loopback, link-local, multicast or reserved. */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  // `process` turns an IPv4 address in IPv6 form (`::ffff:127.0.0.1`) into IPv4.
  const processed = ipaddr.process(address)
  const isAssigned = processed instanceof ipaddr.IPv4 || processed.match(globalUnicast, 3)
  return isAssigned && processed.range() === 'unicast' && processed.toString() !== platformAddress
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
