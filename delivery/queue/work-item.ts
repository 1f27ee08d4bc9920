import type { Entry } from '../../journal/entry.ts'
import type { Change } from '../../store/store.ts'

/** One delivery that is owed. It stays in its queue until it is acknowledged or given up. */
export interface WorkItem {
  /** Where the message lies in the journal that has the payload; 0: the stored item has it itself. */
  position: number
  /**
   * Orders the items of a queue by acceptance. What a new webhook begins with has its position in the journal for it,
   * which is below all others: see `isFromBefore`.
   */
  sequence: number
  /** Id of the event: receivers recognise repetitions by it. */
  messageId: string
  /** What this queue adds to the payload. */
  details: Details
  /** Milliseconds since the epoch. */
  enqueuedAt: number
  /** When its event was accepted, milliseconds since the epoch; only of an item that was put there later. */
  acceptedAt?: number
  /** Deliveries that were tried. */
  tries: number
  /** Answers that blamed the message itself. */
  refusals: number
  /** Set: it has stepped out of the line and is tried again on its own, not before then. */
  asideUntil?: number
  /** The last ones, oldest first. */
  attempts: Attempt[]
}

/** Makes an item with the next sequence. */
export type NewItem = (messageId: string, details: Details) => WorkItem

/** Reads what an item carries; undefined when it is not stored any more. */
export type ReadPayload = (queue: string, item: WorkItem) => Promise<Buffer | undefined>

/** Plain data of the queue's kind: JSON. */
export type Details = Readonly<Record<string, unknown>>

/** One try to deliver, as operators and subscribers read it. */
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

/** An item that was given up. It can be replayed: what is stored of it has the payload. */
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
  /** What a queue is to do with it; undefined: nothing. */
  describe: (
    message: Pick<Entry, 'payload' | 'institutionId'>,
  ) => Pick<WorkItem, 'messageId' | 'details'> | undefined
}

/** New work that follows from one event. */
export interface NewWork {
  messageId: string
  /** Plans what is not planned yet for this event and scope; the changes that store it. */
  once: (scope: string, make: () => PlannedWork) => readonly Change[]
  groups: readonly WorkGroup[]
}

/** Items that are owed together, or not at all when `scope` had this event already. */
export interface WorkGroup {
  scope: string
  /** What they carry: the payload of a message that is stored with them, by its place among those, or bytes. */
  content: { nth: number } | { payload: Buffer }
  /** At least one. */
  items: readonly { queue: string; details: Details }[]
}

/** What stores work; `show` is told the first number of its commit. */
export interface PlannedWork {
  changes: readonly Change[]
  show: (first: number) => void
}
