import type { IncomingMessage } from 'node:http'
import { isIPv4, isIPv6 } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * The client's address, by the headers `Forwarded` (RFC 7239) and `X-Forwarded-For`. `peer`: the address of the
 * connection. Only what a trusted proxy has added counts: each adds the address of its own peer at the end of a list,
 * and a hostile client may have sent all entries before. So the lists are read backwards up to the first address that is
 * no trusted proxy.
 *
 * A proxy writes one header and passes the other on, as the client sent it. So if both headers are there, they must give
 * the same address. Otherwise, and where a trusted proxy says nothing useful, the address of that proxy counts.
 * `isDoubtful`: the headers contradict each other.
 */
export function clientOf(
  { headersDistinct }: Pick<IncomingMessage, 'headersDistinct'>,
  peer: string,
  isTrusted: (address: string) => boolean,
): { address: string; isDoubtful: boolean } {
  if (!isTrusted(peer)) return { address: peer, isDoubtful: false }
  const { forwarded, 'x-forwarded-for': listed } = headersDistinct
  const [first = peer, second = first] = [
    listed?.flatMap((line) => line.split(',')),
    forwarded?.flatMap(hopsOfForwarded),
  ]
    .filter((hops) => hops !== undefined)
    .map(nearestStranger)
  return first === second ? { address: first, isDoubtful: false } : { address: peer, isDoubtful: true }

  function nearestStranger(hops: string[]): string {
    let known = peer
    // One after the other: a client may have sent thousands.
    for (const hop of hops.reverse()) {
      const address = addressIn(hop.trim())
      if (address === undefined) return known
      known = address
      if (!isTrusted(known)) return known
    }
    return known
  }
}

/** One `name=value` of `Forwarded` with the character behind it. Also takes what some proxies do not quote. */
const pair = /[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;]+))[ \t]*)?([;,]|$)/y

/** The nodes of one line of `Forwarded`. Who sends something else hides them all (RFC 7239 §4). */
function hopsOfForwarded(line: string): string[] {
  const hops: string[] = []
  let node: string | undefined
  pair.lastIndex = 0
  for (;;) {
    const found = pair.exec(line)
    if (!found) return ['']
    const [, name, quoted, bare, end] = found
    if (name?.toLowerCase() === 'for') {
      if (node !== undefined) return ['']
      node = quoted?.replace(/\\(.)/g, '$1') ?? bare
    }
    if (end === ';') continue
    hops.push(node ?? '')
    node = undefined
    if (end === '') return hops
  }
}

/** An address, as `X-Forwarded-For` has it and RFC 7239 §6 writes it: also with a port, and in brackets. */
const place = /^(?:\[([^\]]+)\]|([\d.]+))(?::(?:\d{1,5}|_[\w.-]+))?$/

/** Undefined: the text hides the address (`unknown`, `_x`), or is something else. */
function addressIn(text: string): string | undefined {
  const [, inBrackets, dotted] = place.exec(text) ?? []
  const address = inBrackets ?? dotted ?? text
  const isAddress = inBrackets === undefined ? isIPv4(address) || isIPv6(address) : isIPv6(address)
  // With a zone (`fe80::1%eth0`) an address is one of the proxy's own network.
  return isAddress && !address.includes('%') ? ipaddr.process(address).toString() : undefined
}
