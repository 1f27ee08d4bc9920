import type { Livestream } from '../../validator/feed/feed.ts'
import type { AedesSettings, Subject } from './subject.ts'

/** Something that must not happen to the clients of a broker. */
export interface Hazard {
  /** The thing that is counted, and the way to count it. */
  about: string
  /** It needs a fault of the store, which the bench makes in Redis: the embedded store has none. */
  onRedis?: boolean
  /** It disturbs other hazards, and gets a system of its own. */
  alone?: boolean
  /** Settings of the peer's brokers, where they matter. */
  aedes?: AedesSettings
  /** Looks for the hazard, and ends by itself. */
  look(place: Place): Promise<Seen>
}

/** Where a hazard is looked for: a system, and an institution with livestreams that no other hazard uses. */
export interface Place {
  subject: Subject
  institution: string
  livestream: Livestream
  other: Livestream
}

export interface Seen {
  shown: boolean
  /** The count. */
  count: number
  /** The highest count that was possible. */
  of: number
}

/** One is too many. If none was possible, the hazard was not looked for. */
export function seen(count: number, of: number): Seen {
  if (of === 0) throw new Error('it could not be looked for')
  return { shown: count > 0, count, of }
}
