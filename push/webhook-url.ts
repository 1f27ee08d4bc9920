import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Longest webhook URL. */
export const maxWebhookUrlLength = 2048

/** Time for one DNS question, milliseconds. */
const dnsTimeoutMs = 2_000

/** All addresses of a name; an empty list where there are none or nobody answers. */
export type Resolve = (name: string) => Promise<readonly string[]>

/**
 * Why events cannot be sent to this URL, or undefined (design.md §10): it must be https and public. A name
 * that does not resolve at the moment is let through: the address is checked again at every connection.
 */
export async function checkWebhookUrl(
  text: string,
  options: { allowPrivate: boolean; resolve?: Resolve },
): Promise<string | undefined> {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || text.length > maxWebhookUrlLength) return 'expected an https URL'
  if (url.protocol !== 'https:') return `expected https, not ${url.protocol.slice(0, 20)}`
  if (url.username !== '' || url.password !== '') return 'expected no user name and password in it'
  if (options.allowPrivate) return undefined
  const host = hostOf(url)
  if (isIP(host) !== 0) return isPublicAddress(host) ? undefined : 'the address is not a public one'
  if (!host.includes('.') || privateSuffix.test(host)) return 'the name is not a public one'
  const addresses = await (options.resolve ?? resolvePublicly)(host)
  if (addresses.every(isPublicAddress)) return undefined
  return 'the name leads to an address that is not public'
}

/** The host as an address or a name; the parser has written every spelling of an IPv4 address as four numbers. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
}

/** Whether an address is one of the open internet: not private, loopback, link-local, multicast or reserved. */
export function isPublicAddress(address: string): boolean {
  // `process` turns an IPv4 address in IPv6 clothes into what it is.
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'unicast'
}

const privateSuffix = /(^|\.)(localhost|local|internal|lan|home\.arpa)$/

/** Asks the name servers directly: a lookup of the system would hold a thread that the store needs. */
export async function resolvePublicly(name: string): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: dnsTimeoutMs, tries: 1 })
  const nothing = (): string[] => []
  const found = await Promise.all([
    resolver.resolve4(name).catch(nothing),
    resolver.resolve6(name).catch(nothing),
  ])
  return found.flat()
}
