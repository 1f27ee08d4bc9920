import type { Livestream } from '../../validator/feed/feed.ts'
import type { AedesSettings, Subject } from './subject.ts'

/** Something that must not happen to the clients of a broker. */
export interface Hazard {
  /** The thing that is counted, and the way to count it. */
  about: string
  /** The hazard needs a fault of the store. The bench can make faults in Redis, but not in the embedded store. */
  onRedis?: boolean
  /** The hazard disturbs others, so it gets a system of its own. */
  alone?: boolean
  /** Settings of the Aedes brokers, if this hazard needs special ones. */
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
  /** The number that `about` describes, such as lost messages. */
  count: number
  /** The highest number that was possible. */
  of: number
}

/** The result if a single occurrence shows the hazard. Throws if none was possible, because nothing was tested then. */
export function seen(count: number, of: number): Seen {
  if (of === 0) throw new Error('it could not be looked for')
  return { shown: count > 0, count, of }
}
