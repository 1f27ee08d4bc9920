import type { Principal } from '../../acl/principal.ts'
import { decodeRecord, encodeRecord } from '../../journal/record.ts'
import type { Nodes } from '../../store/nodes/nodes.ts'
import { once } from '../../store/once.ts'
import type { Change, Store } from '../../store/store.ts'
import type { Will } from '../connection/connect-packet.ts'

/** Wills of the connected clients of one credential, bytes. */
const maxWillBytes = 16 * 1024 * 1024

/** Counts the bytes of wills while their clients are connected. */
export function createWillRoom() {
  const bytesOf = new Map<string, number>()

  return {
    /** Takes room for a will of a credential. The answer gives it back; undefined: there is none. */
    take(username: string, { topic, payload }: Will): (() => void) | undefined {
      const bytes = Buffer.byteLength(topic) + payload.length
      if ((bytesOf.get(username) ?? 0) + bytes > maxWillBytes) return undefined
      count(username, bytes)
      return once(() => count(username, -bytes))
    },
  }

  function count(username: string, bytes: number): void {
    const total = (bytesOf.get(username) ?? 0) + bytes
    if (total > 0) bytesOf.set(username, total)
    else bytesOf.delete(username)
  }
}

/** A will that outlived its node. */
interface StoredWill extends Will {
  key: string
  clientId: string
  principal: Principal
  /** The node its client was connected to. */
  node: string
}

/**
 * Stored wills, one per connection: a client that takes its session over must not lose the new will to
 * the end of the old connection.
 */
export function createWills(store: Store, nodes: Nodes) {
  return {
    key: (clientId: string, connection: string) => `will/${encodeURIComponent(clientId)}/${connection}`,

    change(key: string, clientId: string, principal: Principal, { payload, ...will }: Will): Change {
      return { put: key, value: encodeRecord({ clientId, principal, node: nodes.self, ...will }, payload) }
    },

    /** Whether it is still to be published: another node that took this one for dead may have done so. */
    async isDue(key: string): Promise<boolean> {
      if (!nodes.isShared) return true
      // An attempt without an answer may have worked; nothing sent before is applied after this.
      await store.commit([{ tell: 'settled', value: '' }])
      return (await store.get(key)) !== undefined
    },

    /** Whether this node publishes the wills of those that are gone. */
    isHeir: (): boolean => !nodes.isShared || nodes.isLeader(),

    /** The wills of connections that ended with their node. */
    async leftOver(): Promise<StoredWill[]> {
      const wills: StoredWill[] = []
      for await (const [key, value] of store.range('will/')) {
        const { header, payload } = decodeRecord<Omit<StoredWill, 'key' | 'payload'>>(value)
        const isAlive = nodes.isShared && nodes.isLiving(header.node)
        if (!isAlive) wills.push({ ...header, key, payload })
      }
      return wills
    },
  }
}
