import type { Change } from '../../store/store.ts'

/** One delivery that is owed. It stays in its queue until it is acknowledged or given up. */
export interface WorkItem {
  /** Orders the items of a queue by acceptance. */
  sequence: number
  /** Id of the event: receivers recognise repetitions by it. */
  messageId: string
  /** What this queue adds to the body that several queues may share. */
  details: Details
  /** Sequence of the stored body. */
  body: number
  /** Milliseconds since the epoch. */
  enqueuedAt: number
  /** When its event was accepted, milliseconds since the epoch; only of an item that was replayed. */
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

/** An item that was given up. It can be replayed. */
export interface DeadLetter extends WorkItem {
  /** ISO 8601. */
  givenUpAt: string
  reason: string
}

/** New work that follows from one event. */
export interface NewWork {
  messageId: string
  /** Shared by all items. */
  body: Buffer
  /** Plans what is not planned yet for this event and scope; the changes that store it. */
  once: (scope: string, make: () => { changes: readonly Change[]; show: () => void }) => readonly Change[]
  /** Items that are owed together, or not at all when `scope` had this event already. */
  groups: readonly { scope: string; items: readonly { queue: string; details: Details }[] }[]
}
