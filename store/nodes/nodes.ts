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
  /** Of all living nodes exactly one does what is to be done once. */
  isLeader(): boolean
  /** Another node is no longer there; all nodes hear it at the same place among the commits. */
  onGone(listener: (node: string) => void): void
  /** Nodes have come or gone. */
  onChange(listener: () => void): void
  /** The others took this node for dead, and it is back: what it holds must be claimed again. */
  onReturn(listener: () => void): void
  /** Joins the others; call it when everything is loaded and followed. */
  join(): Promise<void>
  leave(): Promise<void>
}

/** Sequences have room for so many. */
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
