import { randomUUID } from 'node:crypto'

/** The nodes that share one store, as this node knows them. */
export interface Nodes {
  /** Id of this node: a new one at every start. */
  readonly self: string
  /** What `hubctl` calls this node. */
  readonly name: string
  /** Whether other nodes may share the store. */
  readonly isShared: boolean
  /** A number that no other living node has: at least 0, below `maxNodes`. */
  slot(): number
  isLiving(node: string): boolean
  /** The slot of a living node. */
  slotOf(node: string): number | undefined
  /** The ids of all living nodes (this one too), ordered by slot. */
  living(): readonly string[]
  nameOf(node: string): string
  /** Where other nodes reach this one without the store. Undefined: it has not said so. */
  urlOf(node: string): string | undefined
  /** Whether this node is the leader: one living node does the work that only one node must do. */
  isLeader(): boolean
  /**
   * Calls back with the id of a node that is gone. This id can also be the one that this node had before its restart.
   */
  onGone(listener: (node: string) => void): void
  /** Calls back when nodes have joined, or are gone. */
  onChange(listener: () => void): void
  /** Calls back when this node has joined again after its removal, and must claim its sessions. */
  onReturn(listener: () => void): void
  /**
   * Whether the others had a sign of this node a moment ago, so they have not removed it. A node that is not in touch
   * may have been removed, and does not know it.
   */
  isInTouch(): boolean
  /** Calls back when this node has lost touch, up to a second later, and when it has touch again. */
  onTouch(listener: (isInTouch: boolean) => void): void
}

/** A node, for code that needs only its slot. */
export type NumberedNode = Pick<Nodes, 'slot'>

/** Makes a key that no other living node has: `key #3` for slot 3, `key` for slot 0. */
export function ownKey(key: string, nodes: NumberedNode | undefined): string {
  const slot = nodes?.slot() ?? 0
  return slot === 0 ? key : `${key} #${slot}`
}

/** Maximum number of nodes on one store: sequences (`sequences.ts`) have no room for more. */
export const maxNodes = 64

/** The only node of an embedded store. */
export function createOnlyNode(name: string): Nodes {
  const self = randomUUID()
  return {
    self,
    name,
    isShared: false,
    slot: () => 0,
    isLiving: (node) => node === self,
    slotOf: (node) => (node === self ? 0 : undefined),
    living: () => [self],
    nameOf: () => name,
    urlOf: () => undefined,
    isLeader: () => true,
    onGone: () => undefined,
    onChange: () => undefined,
    onReturn: () => undefined,
    isInTouch: () => true,
    onTouch: () => undefined,
  }
}
