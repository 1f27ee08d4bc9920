import ipaddr from 'ipaddr.js'

/**
 * Whether an address is in one of the networks, such as `192.0.2.0/24`. A network without a prefix length is one
 * address. An IPv4 address in IPv6 form (`::ffff:192.0.2.7`) counts as the IPv4 address. A text that is no address is in
 * no network.
 */
export function createNetworks(networks: readonly string[]): (address: string) => boolean {
  const ranges = networks.map((network) => {
    if (network.includes('/')) return ipaddr.parseCIDR(network)
    const address = ipaddr.parse(network)
    return [address, address.kind() === 'ipv4' ? 32 : 128] as const
  })
  return (text) => {
    // A link-local address has its interface behind it: `fe80::7%eth0`.
    const [bare = ''] = text.split('%', 1)
    if (ranges.length === 0 || !ipaddr.isValid(bare)) return false
    const address = ipaddr.process(bare)
    return ranges.some(([start, bits]) => start.kind() === address.kind() && address.match(start, bits))
  }
}
