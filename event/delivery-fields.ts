import { Type } from './type.ts'

/** Items are kept for 7 days at most (design.md §10), seconds. */
const mostSeconds = 7 * 24 * 3600

/** Longest delay, milliseconds: audio is 15 to 120 s behind its metadata. */
export const maxDelayMs = 300_000

/** How long after its acceptance an event is delivered (deliveries.md, "When"), milliseconds. */
export const delay = Type.Integer({
  minimum: 0,
  maximum: maxDelayMs,
  description: `milliseconds from 0 to ${maxDelayMs} after the acceptance of an event`,
})

/** For how long an event is worth delivering: in seconds, or until it is over. */
export type MaxAge = number | 'element'

/** The same for webhooks, plugin targets and outputs (deliveries.md, "Worth"). */
export const maxAge = Type.Unsafe<MaxAge>({
  type: ['integer', 'string'],
  minimum: 1,
  maximum: mostSeconds,
  pattern: '^element$',
  description: `seconds from 1 to ${mostSeconds}, or "element": until the element is over`,
})
