import type { Livestream } from '../../validator/feed/feed.ts'
import type { AedesSettings, Subject } from './subject.ts'

/** A failure that no broker should cause its clients, with its test. */
export interface Hazard {
  /** Text for the page: what the test does, and what it counts. */
  about: string
  /** The test makes Redis fail, or counts the commands of Redis. */
  onRedis?: boolean
  /** The test needs a system of its own, because it would disturb other tests. */
  alone?: boolean
  /** Settings of the Aedes brokers, if this hazard needs special ones. */
  aedes?: AedesSettings
  /** Looks for the hazard, and ends without help from the caller. */
  look(place: Place): Promise<Seen>
}

/** Where the bench looks for a hazard. No other hazard uses the two livestreams. */
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

/** Makes the result: `shown` if `count` is above 0. Throws if `of` is 0: nothing was tested. */
export function seen(count: number, of: number): Seen {
  if (of === 0) throw new Error('it could not be looked for')
  return { shown: count > 0, count, of }
}
