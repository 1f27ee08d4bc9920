import { bareName, eventKinds } from './kind.ts'
import { trackTypes } from './kinds/track.ts'
import { oneOf } from './schema.ts'
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

/** In which order a webhook gets the events of several livestreams (deliveries.md, "Lanes"). */
export const ordering = oneOf(['all', 'livestream'], {
  description:
    'all: one order over its livestreams, one push at a time; livestream: those of each in order, side by side',
})

/** Longest list of livestreams of one webhook. */
const maxSelected = 200
/** In place of a list: all livestreams, later ones included. */
export const allLivestreams = '*'

/** Which livestreams a webhook gets beside that of its topic (deliveries.md, "Whom"). */
export const livestreams = Type.Array(Type.String({ maxLength: 500 }), {
  minItems: 1,
  maxItems: maxSelected,
  description: `ids of livestreams, beside that of the topic, at most ${maxSelected}; or ["*"]: all, later ones included`,
})

/** Which kinds of events a webhook gets. */
export const kinds = Type.Array(oneOf(eventKinds.map(bareName)), {
  minItems: 1,
  description: 'the kinds of events; without it, tracks: playing and next',
})

/** Which types of tracks a webhook gets. */
export const types = Type.Array(oneOf(trackTypes), {
  minItems: 1,
  description: 'the types of tracks, such as music; events of other classes have none and come anyway',
})
