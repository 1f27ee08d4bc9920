import { randomUUID } from 'node:crypto'

/** The nodes that share one store, as one of them sees them. */
export interface Nodes {
  /** Id of this node: a new one at every start. */
  readonly self: string
  /** What `hubctl` calls this node. */
  readonly name: string
  /** Whether there can be others. */
  readonly isShared: boolean
  /** A number below `maxNodes` that no other living node has. */
  slot(): number
  isLiving(node: string): boolean
  /** The slot of a living node. */
  slotOf(node: string): number | undefined
  /** Ids, this one included, by slot. */
  living(): readonly string[]
  nameOf(node: string): string
  /** Whether this node does the work that one node does for all: true on exactly one living node. */
  isLeader(): boolean
  /** Another node is no longer there; all nodes hear it at the same place among the commits. */
  onGone(listener: (node: string) => void): void
  /** Nodes have come or gone. */
  onChange(listener: () => void): void
  /** The others took this node for dead, and it is back: it must claim again everything that it holds. */
  onReturn(listener: () => void): void
  /** Joins the others; call it when everything is loaded and followed. */
  join(): Promise<void>
  leave(): Promise<void>
}

/** A node, for code that needs only its slot. */
export type NumberedNode = Pick<Nodes, 'slot'>

/** A key that no other living node has: in slot 0 the key itself, as on an embedded store. */
export function ownKey(key: string, nodes: NumberedNode | undefined): string {
  const slot = nodes?.slot() ?? 0
  return slot === 0 ? key : `${key} #${slot}`
}

/** Sequences have room for so many nodes. */
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
    isLeader: () => true,
    onGone: () => undefined,
    onChange: () => undefined,
    onReturn: () => undefined,
    join: async () => undefined,
    leave: async () => undefined,
  }
}
