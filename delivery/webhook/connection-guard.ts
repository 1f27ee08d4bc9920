import { lookup as lookupBySystem } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { isPublicAddress, type Resolve, resolvePublicly } from './webhook-url.ts'

/**
 * Makes the DNS look-up for connections to webhooks. Without `allowPrivate`, the look-up returns public addresses only.
 * This prevents DNS rebinding. If the host of a URL is an IP address, Node makes no look-up. Then `problemOf` checks
 * the address.
 */
export function guardedLookup(options: { allowPrivate: boolean; resolve?: Resolve }): LookupFunction {
  const { allowPrivate, resolve = resolvePublicly } = options
  return (name, { all }, callback) => {
    find(name).then(
      (addresses) => {
        const allowed = allowPrivate ? addresses : addresses.filter(isPublicAddress)
        const [first] = allowed
        if (first === undefined) {
          const reason =
            addresses.length === 0 ? 'cannot be resolved' : 'leads to an address that is not public'
          callback(new Error(`the name ${name} ${reason}`), '')
        } else if (all) {
          callback(
            null,
            allowed.map((address) => ({ address, family: isIP(address) })),
          )
        } else callback(null, first, isIP(first))
      },
      (error) => callback(error, ''),
    )
  }

  async function find(name: string): Promise<readonly string[]> {
    // Only the operating system knows a name without dots: name servers would answer late.
    if (allowPrivate && !name.includes('.')) return askSystem(name)
    const addresses = await resolve(name)
    return addresses.length > 0 || !allowPrivate ? addresses : askSystem(name)
  }
}

function askSystem(name: string): Promise<string[]> {
  return new Promise((done) => {
    lookupBySystem(name, { all: true }, (_error, found) => done(found?.map(({ address }) => address) ?? []))
  })
}
