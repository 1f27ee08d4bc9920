import { originOf } from './origin.ts'

export type ConnectionBounds = ReturnType<typeof createConnectionBounds>

/** The place of one open connection. */
export interface Place {
  /** Whether its address has room for it. Called once the address is known. An IPv6 /64 is one address. */
  belongsTo(address: string): boolean
  /** Frees the place. A second call changes nothing. */
  leave(): void
}

/** Bounds the open connections, of all addresses and of one. Listeners with the same bounds share them. */
export function createConnectionBounds(limits: {
  maxConnections: number
  /** 0: no limit. */
  maxConnectionsPerAddress: number
}) {
  const { maxConnections, maxConnectionsPerAddress } = limits
  const perAddress = new Map<string, number>()
  let open = 0

  return {
    /** Takes a place before anything else is known of a connection; undefined: there is none left. */
    enter(): Place | undefined {
      if (open >= maxConnections) return undefined
      open++
      let hasLeft = false
      let address: string | undefined
      return {
        belongsTo(client) {
          const origin = originOf(client).address
          const count = (perAddress.get(origin) ?? 0) + 1
          if (maxConnectionsPerAddress > 0 && count > maxConnectionsPerAddress) return false
          address = origin
          perAddress.set(origin, count)
          return true
        },
        leave() {
          if (hasLeft) return
          hasLeft = true
          open--
          if (address === undefined) return
          const left = (perAddress.get(address) ?? 1) - 1
          if (left > 0) perAddress.set(address, left)
          else perAddress.delete(address)
        },
      }
    },
  }
}
