import type { Principal } from '../acl/principal.ts'
import type { Change, Store } from '../store/store.ts'
import type { Will } from './connect-packet.ts'
import { decodeRecord, encodeRecord } from './record.ts'

/** A will that outlived its node. */
export interface StoredWill extends Will {
  key: string
  clientId: string
  principal: Principal
}

/**
 * Stored wills, one per connection: a client that takes its session over must not lose the new will to
 * the end of the old connection.
 */
export function createWills(store: Store) {
  return {
    key: (clientId: string, connection: number) => `will/${encodeURIComponent(clientId)}/${connection}`,

    change(key: string, clientId: string, principal: Principal, { payload, ...will }: Will): Change {
      return { put: key, value: encodeRecord({ clientId, principal, ...will }, payload) }
    },

    /** The wills of connections that ended with their node. */
    async leftOver(): Promise<StoredWill[]> {
      const wills: StoredWill[] = []
      for await (const [key, value] of store.range('will/')) {
        const { header, payload } = decodeRecord<Omit<StoredWill, 'key' | 'payload'>>(value)
        wills.push({ ...header, key, payload })
      }
      return wills
    },
  }
}
