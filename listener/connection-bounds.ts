import { originOf } from './origin.ts'
import { noOthers, type SharedCounts } from './shared-counts.ts'

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

/** How many connections a process has room for. Its listeners share it. */
export interface Room {
  /** The most that one listener may have. */
  ofOne: number
  all: number
  /** How many there are. */
  open: number
}

/**
 * Limits the open connections, in all and per address. Listeners that get the same bounds share these limits, and so do
 * the workers of a hub: together they may exceed one by the connections of some milliseconds.
 */
export function createConnectionBounds(limits: {
  maxConnections: number
  /** 0: no limit. */
  maxConnectionsPerAddress: number
  /** Absent: this process has room for all. */
  room?: Room
  /** The connections of other workers. `name`: the same for the same bounds in each worker. */
  together?: { name: string; counts: SharedCounts }
}) {
  const { maxConnections, maxConnectionsPerAddress } = limits
  const { room = { ofOne: maxConnections, all: maxConnections, open: 0 } } = limits
  const { name, counts } = limits.together ?? { name: '', counts: noOthers }
  const perAddress = new Map<string, number>()
  let open = 0

  return {
    /** Takes a place for a new connection, before the client's address is known. Undefined: no place is left. */
    enter(): ConnectionPlace | undefined {
      if (open >= room.ofOne || room.open >= room.all) return undefined
      if (open + counts.ofOthers(name) >= maxConnections) return undefined
      open++
      room.open++
      counts.add(name, 1)
      let hasLeft = false
      let address: string | undefined
      const belongsToNobody = () => {
        if (address === undefined) return
        const left = (perAddress.get(address) ?? 1) - 1
        if (left > 0) perAddress.set(address, left)
        else perAddress.delete(address)
        counts.add(`${name} ${address}`, -1)
        address = undefined
      }
      return {
        belongsTo(client) {
          belongsToNobody()
          const origin = originOf(client).address
          const count = (perAddress.get(origin) ?? 0) + 1
          const ofAll = count + counts.ofOthers(`${name} ${origin}`)
          if (maxConnectionsPerAddress > 0 && ofAll > maxConnectionsPerAddress) return false
          address = origin
          perAddress.set(origin, count)
          counts.add(`${name} ${origin}`, 1)
          return true
        },
        belongsToNobody,
        leave() {
          if (hasLeft) return
          hasLeft = true
          open--
          room.open--
          counts.add(name, -1)
          belongsToNobody()
        },
      }
    },
  }
}
