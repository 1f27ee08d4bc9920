import type { Message } from '../event/message.ts'
import type { Change } from '../store/store.ts'

/** Where and when an event came in. */
export interface Arrival {
  /** Wall clock, milliseconds since the epoch. */
  at: number
  /** `performance.now()` at the arrival of its last byte: where the budget starts. */
  started: number
  /** Changes of the door that must be stored with the decision, or not at all. */
  alongside?: readonly Change[]
  /** Called as soon as it is decided to how many livestreams the event goes, before anything is stored. */
  decided?: (livestreams: number) => void
}

/**
 * Stores messages with `alongside` in one commit, then hands them to everyone connected. Resolves when both are done;
 * rejects when nothing was stored. `stored` is called as soon as the commit is stored, before any later commit of
 * another node is told, with the position of the first message: what follows from it must be in memory by then.
 */
export type Distribute = (
  messages: readonly Message[],
  alongside?: readonly Change[],
  stored?: (first: number) => void,
) => Promise<void>
