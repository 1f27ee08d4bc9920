import { playing, serviceOf } from '../../test/events.ts'
import type { Attack } from './attack.ts'
import { floodEvents } from './flood-events.ts'

/** The maximum number of livestreams in an event, and a larger number. */
const counts = [200, 205]

/** Events for about 200 livestreams each. Every second event names too many. */
export const manyLivestreams: Attack = floodEvents(({ livestreams }) =>
  counts.map((count) => {
    const [first] = livestreams
    if (!first || livestreams.length < count) throw new Error(`the feed has no ${count} livestreams`)
    const services = livestreams.slice(0, count).map(serviceOf)
    return Buffer.from(JSON.stringify(playing(first, { services })))
  }),
)
