/**
 * A message on its way to subscribers. The rules of its event class are fields, so the broker never has to read the
 * payload.
 */
export interface Message {
  topic: string
  /** The history that the message belongs to: a livestream id or a feedback topic. Absent: the same as `topic`. */
  stream?: string
  /** The institution that published the event. The payload need not name it. */
  institutionId?: string
  payload: Buffer
  /** The highest QoS at which subscribers get the message. */
  qos: 0 | 1 | 2
  /** Makes the message a retained value. For each topic and slot, the newest event time wins. */
  retained?: Retention
  /** Decides whether a session that was not connected gets the message when it returns. */
  queue: QueueRule
  /** A report on an event. No client gets a report before its commit is stored. */
  isReport?: true
  /** The publisher has sent this event before, for example because no acknowledgement arrived. */
  isRepetition?: true
  /** The message is a report that lists errors. */
  hasErrors?: true | undefined
  /** For the history: part of the reported event, if the event was not fully published. No client gets this part. */
  refused?: Excerpt | undefined
  /** For the history: who made the reported event, as its publisher says. No client gets this. */
  creator?: string | undefined
}

/** The part of an event that is stored with its report. `head`: the first bytes. */
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
  /** The `name` of a control state, or '' for other events. A topic has one value per slot. */
  slot: string
  /** Event time, milliseconds since the epoch. */
  time: number
  /** Until when new subscribers get the value, milliseconds since the epoch. */
  expires?: number
}

/**
 * Which messages a returning session gets. `latest`: of each topic, the message with the newest event time. Expired
 * messages are left out.
 */
interface QueueRule {
  keep: 'latest' | 'every'
  /** Event time, milliseconds since the epoch; used by `latest`. */
  time?: number
  expires?: number
}
