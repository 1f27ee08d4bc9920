import type { Livestream } from '../../validator/feed/feed.ts'
import type { AedesSettings, Subject } from './subject.ts'

/** A failure that a broker must not cause its clients, and the test for it. */
export interface Hazard {
  /** Text for the page: the situation that the test makes, and what the test counts in it. */
  about: string
  /** The test needs Redis: it makes Redis fail, or counts its commands. Neither is possible with the embedded store. */
  onRedis?: boolean
  /** The test would disturb the tests of other hazards, so it gets a system of its own. */
  alone?: boolean
  /** Settings of the Aedes brokers, if this hazard needs special ones. */
  aedes?: AedesSettings
  /** Looks for the hazard, and ends without help from the caller. */
  look(place: Place): Promise<Seen>
}

/** Where the bench looks for a hazard: a system, and an institution with two livestreams that no other hazard uses. */
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

/** A result that shows the hazard if it occurred at least once. Throws if it could not occur: nothing was tested. */
export function seen(count: number, of: number): Seen {
  if (of === 0) throw new Error('it could not be looked for')
  return { shown: count > 0, count, of }
}
