import { originOf } from './origin.ts'

export type ConnectionBounds = ReturnType<typeof createConnectionBounds>

/** The place that one open connection takes. */
export interface ConnectionPlace {
  /**
   * Counts the connection for the address of its client (IPv6: the /64), and no longer for a former one. False: the
   * address has too many connections, and the connection counts for none.
   */
  belongsTo(address: string): boolean
  /** The connection counts for no address any more, but still has its place. */
  belongsToNobody(): void
  /** Frees the place. A second call changes nothing. */
  leave(): void
}

/** Limits the open connections, in all and per address. Listeners that get the same bounds share these limits. */
export function createConnectionBounds(limits: {
  maxConnections: number
  /** 0: no limit. */
  maxConnectionsPerAddress: number
}) {
  const { maxConnections, maxConnectionsPerAddress } = limits
  const perAddress = new Map<string, number>()
  let open = 0

  return {
    /** Takes a place for a new connection, before the client's address is known. Undefined: no place is left. */
    enter(): ConnectionPlace | undefined {
      if (open >= maxConnections) return undefined
      open++
      let hasLeft = false
      let address: string | undefined
      const belongsToNobody = () => {
        if (address === undefined) return
        const left = (perAddress.get(address) ?? 1) - 1
        if (left > 0) perAddress.set(address, left)
        else perAddress.delete(address)
        address = undefined
      }
      return {
        belongsTo(client) {
          belongsToNobody()
          const origin = originOf(client).address
          const count = (perAddress.get(origin) ?? 0) + 1
          if (maxConnectionsPerAddress > 0 && count > maxConnectionsPerAddress) return false
          address = origin
          perAddress.set(origin, count)
          return true
        },
        belongsToNobody,
        leave() {
          if (hasLeft) return
          hasLeft = true
          open--
          belongsToNobody()
        },
      }
    },
  }
}
