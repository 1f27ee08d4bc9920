import type { Entry } from '../../journal/entry.ts'
import type { Change } from '../../store/store.ts'

/** One delivery that is still to be made. It stays in its queue until it is acknowledged or given up. */
export interface WorkItem {
  /** Position in the journal of the message that has the payload; 0: the payload is stored with the item. */
  position: number
  /**
   * Orders the items of a queue by acceptance. An item from before the queue began has the position of its message as
   * its sequence, which is smaller than all others: see `isFromBefore`.
   */
  sequence: number
  /** Id of the event: receivers recognise repetitions by it. */
  messageId: string
  /** Data that this queue adds to the payload. */
  details: Details
  /** Milliseconds since the epoch. */
  enqueuedAt: number
  /** When its event was accepted, milliseconds since the epoch. Set only if the item was made later than that. */
  acceptedAt?: number
  /** Number of attempts. */
  tries: number
  /** Answers that blamed the message itself. */
  refusals: number
  /** Set: the item was set aside, and is not tried again before this time, milliseconds since the epoch. */
  asideUntil?: number
  /** The last attempts, oldest first. */
  attempts: Attempt[]
}

/** Makes an item with the next sequence. */
export type NewItem = (messageId: string, details: Details) => WorkItem

/** Reads the payload of an item; undefined when it is not stored any more. */
export type ReadPayload = (queue: string, item: WorkItem) => Promise<Buffer | undefined>

/** JSON data. Its fields depend on the kind of queue. */
export type Details = Readonly<Record<string, unknown>>

/** One attempt to deliver, as operators and subscribers read it. */
export interface Attempt {
  messageId: string
  /** ISO 8601. */
  time: string
  /** Status of the answer; null: there was none. */
  status: number | null
  /** Milliseconds. */
  duration: number
  /** Why it was not acknowledged; null: it was. */
  reason: string | null
}

/** An item that was given up. Its payload is stored with it, so that it can be replayed. */
export interface DeadLetter extends Omit<WorkItem, 'position'> {
  /** ISO 8601. */
  givenUpAt: string
  reason: string
}

/** A message of the journal that was accepted earlier. */
export interface EarlierMessage {
  position: number
  /** Milliseconds since the epoch. */
  at: number
  /** The item that the message becomes in a queue; undefined: the message becomes none. */
  describe: (
    message: Pick<Entry, 'payload' | 'institutionId'>,
  ) => Pick<WorkItem, 'messageId' | 'details'> | undefined
}

/** New work that follows from one event. */
export interface NewWork {
  messageId: string
  /** Plans work that is not planned yet for this event and scope. Returns the changes that store it. */
  once: (scope: string, make: () => PlannedWork) => readonly Change[]
  groups: readonly WorkGroup[]
}

/** Items that are made together, and only once for this event and `scope`. */
export interface WorkGroup {
  scope: string
  /** The payload of the items: bytes, or a reference to the nth message of the commit that stores the items. */
  content: { nth: number } | { payload: Buffer }
  /** At least one. */
  items: readonly { queue: string; details: Details }[]
}

/** The changes that store work. `show` is called when they are stored, with the first position of the commit. */
export interface PlannedWork {
  changes: readonly Change[]
  show: (first: number) => void
}
