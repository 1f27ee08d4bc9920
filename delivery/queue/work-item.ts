import type { Entry } from '../../journal/entry.ts'
import type { Change } from '../../store/store.ts'

/**
 * One message that the hub still has to deliver to one webhook or plugin target. It stays in its queue until the target
 * acknowledges it, or the hub gives it up or drops it.
 */
export interface WorkItem {
  /** Journal position of the message that has the payload. 0: the store holds the payload with the item. */
  position: number
  /**
   * Number that orders the items of a queue by acceptance. If the event is older than the queue, the sequence is the
   * position of its message in the journal. That is smaller than all other sequences: see `isOlderThanQueue`.
   */
  sequence: number
  /** Id of the event, by which receivers recognise repetitions. */
  messageId: string
  /** Data that the hub delivers besides the payload: for a webhook, the attributes of the push. */
  details: Details
  /** When the hub put the item into the queue, milliseconds since the epoch. */
  enqueuedAt: number
  /** When the hub accepted the event, milliseconds since the epoch. Set only if the item was made later than that. */
  acceptedAt?: number
  /** Number of attempts so far. */
  tries: number
  /** Number of attempts that ended with `refused`: the answer blamed the message itself. */
  refusals: number
  /**
   * The hub does not try the item again before this time, milliseconds since the epoch. Only an item that the hub has
   * set aside, out of the order of its queue, has this field: the endpoint refused the item too often.
   */
  asideUntil?: number
  /** The last attempts, oldest first. */
  attempts: Attempt[]
}

/** Makes an item with the next sequence. */
export type NewItem = (messageId: string, details: Details) => WorkItem

/** Reads the payload of an item. Undefined: the payload is no longer stored. */
export type ReadPayload = (queue: string, item: WorkItem) => Promise<Buffer | undefined>

/** JSON data. The fields for a webhook differ from those for a plugin target. */
export type Details = Readonly<Record<string, unknown>>

/** One attempt to deliver an item, as operators and subscribers see it. */
export interface Attempt {
  messageId: string
  /** When the attempt began, ISO 8601. */
  time: string
  /** Status of the answer. Null: no answer came, or an answer without a status. */
  status: number | null
  /** Milliseconds from the start of the attempt to its outcome. */
  duration: number
  /** Why the attempt failed. Null: the target acknowledged the message. */
  reason: string | null
}

/** An item that the hub gave up. The store holds its payload with it, so that the hub can send it again (replay). */
export interface DeadLetter extends Omit<WorkItem, 'position'> {
  /** When the hub gave the item up, ISO 8601. */
  givenUpAt: string
  reason: string
}

/** A message of the journal that the hub accepted earlier, and that is to become an item of a queue only now. */
export interface EarlierMessage {
  position: number
  /** When the hub accepted the message, milliseconds since the epoch. */
  at: number
  /** Returns the event id and the details for the item of the message. Undefined: the message becomes no item. */
  describe: (
    message: Pick<Entry, 'payload' | 'institutionId'>,
  ) => Pick<WorkItem, 'messageId' | 'details'> | undefined
}

/** The new items that follow from one event. */
export interface NewWork {
  messageId: string
  /**
   * Returns the changes of `make()`. If items for this event and `scope` were planned before, returns no changes and
   * does not call `make`.
   */
  once: (scope: string, make: () => PlannedWork) => readonly Change[]
  groups: readonly WorkGroup[]
}

/**
 * Items of one event that one commit stores together. `scope` tells the groups of the event apart: it is a livestream
 * id, or the queue of a plugin target. If the event is repeated, no second group with the same `scope` is stored.
 */
export interface WorkGroup {
  scope: string
  /** The payload of the items: bytes, or a reference to the nth message of the commit that stores the items. */
  content: { nth: number } | { payload: Buffer }
  /** At least one item. */
  items: readonly { queue: string; details: Details }[]
}

/**
 * The changes that store new items. After their commit, the caller passes the first position of the commit to `show`,
 * which puts the items into the queues in memory.
 */
export interface PlannedWork {
  changes: readonly Change[]
  show: (first: number) => void
}
