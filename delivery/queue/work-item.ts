import type { Attempt } from '../../event/outcome-schemas.ts'
import type { Entry } from '../../journal/entry.ts'
import type { Change } from '../../store/store.ts'
import type { Element } from '../worth/element.ts'

/** One message that the hub still has to deliver to one webhook or plugin target. */
export interface WorkItem {
  /** Journal position of the message that has the payload. 0: the store holds the payload with the item. */
  position: number
  /**
   * Number that orders the items of a queue. In an item older than the queue, this is the journal position of the
   * message: see `isOlderThanQueue`.
   */
  sequence: number
  /** Id of the event, by which receivers recognise repetitions. */
  messageId: string
  /** Data that the hub delivers besides the payload: for a webhook, the attributes of the push. */
  details: Details
  /** What tells when the event is over. Absent: nobody asks. */
  element?: Element
  /** When this node first saw the item, milliseconds of `performance.now()`. Not stored. */
  seen: number
  /** When the hub put the item into the queue, milliseconds since the epoch. */
  enqueuedAt: number
  /** When the hub accepted the event, milliseconds since the epoch. Set only if the item was made later. */
  acceptedAt?: number
  /** Number of attempts so far. */
  tries: number
  /** Number of attempts that ended with `refused`: the answer blamed the message itself. */
  refusals: number
  /**
   * The hub does not try the item before this time, milliseconds since the epoch. Absent: the item is not set aside.
   */
  asideUntil?: number
  /**
   * An attempt by a driver of the operator's own began at this time, milliseconds since the epoch, and its outcome is
   * not stored yet.
   */
  begun?: number
  /** The last attempts, oldest first. */
  attempts: Attempt[]
  /**
   * The item waits alike in other queues, and has no record of its own: see `createSharedItems`. Not stored. All these
   * queues have the same object in memory.
   */
  isShared?: true
}

/** An item as its record has it. */
export type StoredItem = Omit<WorkItem, 'position' | 'seen' | 'isShared'>

/** Makes an item with the next sequence. */
export type NewItem = (messageId: string, details: Details, element?: Element | undefined) => WorkItem

/** Reads the payload of an item. Undefined: the payload is no longer stored. */
export type ReadPayload = (queue: string, item: WorkItem) => Promise<Buffer | undefined>

/** JSON data. The fields for a webhook differ from those for a plugin target. */
export type Details = Readonly<Record<string, unknown>>

/** An item that the hub gave up. Stored with its payload, for a replay. */
export interface DeadLetter extends StoredItem {
  /** When the hub gave the item up, ISO 8601. */
  givenUpAt: string
  reason: string
}

/** An older message of the journal that is to become an item of a queue. */
export interface EarlierMessage {
  position: number
  /** When the hub accepted the message, milliseconds since the epoch. */
  at: number
  /** The event id and details of the item. Undefined: the message becomes no item. */
  describe: (
    message: Pick<Entry, 'payload' | 'institutionId'>,
  ) => Pick<WorkItem, 'messageId' | 'details'> | undefined
}

/** The new items of one event. */
export interface NewWork {
  messageId: string
  /** Returns the changes of `make()`, or none if items for this event and `scope` were planned before. */
  once: (scope: string, make: () => PlannedWork) => readonly Change[]
  groups: readonly WorkGroup[]
}

/**
 * Items of one event. One commit stores all of them. `scope` is a livestream id, or the queue of a plugin target. A
 * repetition of the event stores no second group with the same `scope`.
 */
export interface WorkGroup {
  scope: string
  /**
   * Where the payload of the items is. `nth`: in the message with this number, counted from 0, in the same commit.
   * `payload`: here, as bytes.
   */
  content: { nth: number } | { payload: Buffer }
  /**
   * The queues, at least one, each of which gets an item. The same list each time makes an event cheaper. Only one group of
   * a message may have several: the record of their item has the position of the message in its key.
   */
  queues: readonly string[]
  details: Details
  element?: Element | undefined
}

/** The changes that store new items. `show` then puts them into memory. `first`: the first position of the commit. */
export interface PlannedWork {
  changes: readonly Change[]
  show: (first: number) => void
}
