import { Type } from './type.ts'

/** Items are kept for 7 days at most (design.md §10), seconds. */
const mostSeconds = 7 * 24 * 3600

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
