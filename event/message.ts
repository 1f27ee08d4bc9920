/**
 * A message on its way to subscribers. The validator makes messages, and the broker encodes and sends them. A message
 * carries the rules of its event class, so the broker never has to read the payload.
 */
export interface Message {
  topic: string
  /** The history that the message belongs to: a livestream id or a feedback topic. Absent: the same as `topic`. */
  stream?: string
  /** The institution that published the event. The payload need not name it. */
  institutionId?: string
  payload: Buffer
  /** The QoS with which the broker delivers the message, unless the subscription has a lower QoS. */
  qos: 0 | 1 | 2
  /** If set, the message is a retained value of `topic` and `slot`. The value with the newest event time stays. */
  retained?: Retention
  /** Which messages a session gets later if it was not connected when they arrived. */
  queue: QueueRule
  /** The message is a report on an event. Clients get it only when its commit is certainly stored. */
  isReport?: true
  /** The publisher has sent this event before, for example because no acknowledgement arrived. */
  isRepetition?: true
  /** The message is a report that lists errors. */
  hasErrors?: true | undefined
  /** Part of the reported event, if not all of it was published. It is stored for the history. No client gets it. */
  refused?: Excerpt | undefined
}

/** The part of a received event that is stored with its report. `head`: the first bytes of the event. */
export interface Excerpt {
  head: Buffer
  /** Size of the whole event, bytes. */
  bytes: number
  /** Title of the event; null where the event has none, or could not be read. */
  title: string | null
  artist: string | null
  /** Services for which the event was not published, although it was published for others. */
  refusedServices?: string[]
}

interface Retention {
  /** A topic has one retained value for each slot: the `name` of a control state, or '' for all other events. */
  slot: string
  /** Event time, milliseconds since the epoch. */
  time: number
  /** When the value ends, milliseconds since the epoch. New subscribers do not get it from then on. */
  expires?: number
}

/**
 * Which messages a returning session gets. `latest`: for each topic only the message with the newest event time.
 * `every`: all messages. A message past `expires` is left out.
 */
interface QueueRule {
  keep: 'latest' | 'every'
  /** Event time, milliseconds since the epoch; used by `latest`. */
  time?: number
  expires?: number
}
