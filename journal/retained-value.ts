import type { Message } from '../event/message.ts'
import type { Order } from '../store/store.ts'

/** A value that a new subscriber gets. */
export interface RetainedValue {
  topic: string
  slot: string
  /** Event time, milliseconds since the epoch. */
  time: number
  expires?: number | undefined
  qos: 0 | 1 | 2
  payload: Buffer
  /** Position of its message in the journal. */
  position: number
  /** When the hub accepted the message, milliseconds since the epoch. */
  at: number
  /** The rule by which a returning session gets the value. */
  queue: Message['queue']
  /** The `moment` at which this node last sent the value live. Absent: not sent since the node started. */
  sent?: number
  /** The same for pages, which get a value later. */
  sentToPages?: number
}

/** Identifies a value, without its payload. */
export type ValueKey = Pick<RetainedValue, 'topic' | 'slot' | 'time' | 'position'>

/** The change that a commit under way makes to a slot. */
export interface SlotChange {
  topic: string
  slot: string
  /** The value that the commit stores. Undefined: the commit removes the stored value. */
  value?: RetainedValue | undefined
  /**
   * The rule that lets the store keep an old value with a newer event time. Undefined: the commit always takes effect.
   */
  order?: Order | undefined
}

/** A slot: the topic of a value, and the name of a control state or ''. */
export type Slot = Pick<RetainedValue, 'topic' | 'slot'>

/** Maximum number of values on one topic. New slots without end would fill the memory. */
const maxSlots = 100
/** Maximum number of bytes of all payloads on one topic. The latest value always stays. */
const maxSlotBytes = 512 * 1024

/** Returns the oldest values that must be removed, so that the others are within the bounds. */
export function beyondBounds<Value extends RetainedValue>(settled: readonly Value[]): readonly Value[] {
  let bytes = settled.reduce((sum, { payload }) => sum + payload.length, 0)
  let count = 0
  for (const { payload } of settled) {
    const left = settled.length - count
    if (left <= maxSlots && (bytes <= maxSlotBytes || left === 1)) break
    bytes -= payload.length
    count++
  }
  return settled.slice(0, count)
}
