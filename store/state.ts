import type { Replacement } from './repair.ts'

/** What is known about the store of a node without asking it. */
export interface StoreState {
  /** Why it cannot be reached, where that is known. */
  unreachable(): string | undefined
  /** A damaged store stayed lost, and nobody has accepted yet that this one was empty. */
  replaced(): Replacement | undefined
  accept(): Promise<void>
}
