/**
 * A message on its way to subscribers: distribution takes it from the validator, and the broker encodes
 * it. It carries the rules of its class, so that neither of them reads the payload.
 */
export interface Message {
  topic: string
  /** The livestream by which its history is kept. Absent: the history is kept by topic. */
  stream?: string
  /** Who published an event: its payload need not say so. */
  institutionId?: string
  payload: Buffer
  /** Delivery is at most this QoS, lower where a subscription asks for less. */
  qos: 0 | 1 | 2
  /** Set: kept for later subscribers under `topic` and `slot`, where the newest event time wins. */
  retained?: Retention
  /** The rule by which a session that was away gets the message. */
  queue: QueueRule
  /** The message reports a stored decision. No client gets the report before the decision is certainly stored. */
  isReport?: true
  /** Its publisher has sent the event before, and it was published then. */
  isRepetition?: true
  /** A report with errors. */
  hasErrors?: true | undefined
  /** The event that a report is about, if not all of it was published. It is stored with the report, for no client. */
  refused?: Excerpt | undefined
}

/** A received event: its beginning, and the fields that lists show. */
export interface Excerpt {
  head: Buffer
  /** Bytes of the whole event. */
  bytes: number
  /** Title of the event; null where the event has none, or could not be read. */
  title: string | null
  artist: string | null
  /** Services for which the event was not published, although it was published for others. */
  refusedServices?: string[]
}

interface Retention {
  /** Distinguishes values that live side by side on one topic: the `name` of a control state, else ''. */
  slot: string
  /** Event time, milliseconds since the epoch. */
  time: number
  /** From this instant on the value is no longer shown, milliseconds since the epoch. */
  expires?: number
}

/** `latest`: a session gets only the newest per topic by event time. `every`: it gets all. Both until `expires`. */
interface QueueRule {
  keep: 'latest' | 'every'
  /** Event time, milliseconds since the epoch; used by `latest`. */
  time?: number
  expires?: number
}
