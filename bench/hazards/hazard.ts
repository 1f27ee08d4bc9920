import type { Livestream } from '../../validator/feed/feed.ts'
import type { AedesSettings, Subject } from './subject.ts'

/** Something that must not happen to those who rely on a broker. */
export interface Hazard {
  /** What is counted, and how. */
  about: string
  /** Faults of the store are made with the Redis below a system: the embedded store has none. */
  onRedis?: boolean
  /** It disturbs others: it gets systems of its own. */
  alone?: boolean
  /** How the brokers of the peer are set up for it, where that matters. */
  aedes?: AedesSettings
  /** Ends by itself. */
  look(place: Place): Promise<Seen>
}

/** Where it is looked for: a system, and an institution with livestreams that no other hazard uses. */
export interface Place {
  subject: Subject
  institution: string
  livestream: Livestream
  other: Livestream
}

export interface Seen {
  shown: boolean
  /** What was counted. */
  count: number
  /** How many it could have been. */
  of: number
}

/** One is too many. Where none was possible, nothing was looked at. */
export function seen(count: number, of: number): Seen {
  if (of === 0) throw new Error('it could not be looked for')
  return { shown: count > 0, count, of }
}
