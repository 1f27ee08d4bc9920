import ipaddr from 'ipaddr.js'

type Address = ReturnType<typeof ipaddr.process>

/** Whether an address is in one of the networks. A text that is no address is in no network. */
export function createNetworks(networks: readonly string[]): (address: string) => boolean {
  const each = networks.map(createNetwork)
  return (text) => {
    const address = each.length > 0 ? parseAddress(text) : undefined
    return address !== undefined && each.some((covers) => covers(address))
  }
}

/** Whether an address is in a network, such as `192.0.2.0/24`. A network without a prefix length is one address. */
export function createNetwork(network: string): (address: Address) => boolean {
  const [start, bits] = network.includes('/') ? ipaddr.parseCIDR(network) : oneAddress(network)
  return (address) => start.kind() === address.kind() && address.match(start, bits)
}

/** An IPv4 address in IPv6 form (`::ffff:192.0.2.7`) counts as the IPv4 address. Undefined: the text is no address. */
export function parseAddress(text: string): Address | undefined {
  // A link-local address has its interface behind it: `fe80::7%eth0`.
  const [bare = ''] = text.split('%', 1)
  return ipaddr.isValid(bare) ? ipaddr.process(bare) : undefined
}

function oneAddress(text: string): [Address, bits: number] {
  const address = ipaddr.parse(text)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}
