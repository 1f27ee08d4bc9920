import { after, type NowPlaying, nothing, shownFrom } from '../../client/now-playing.ts'

/** What a livestream shows, and the events that wait for their time. */
export interface Programme {
  shown: NowPlaying
  waiting: readonly unknown[]
}

export const silent: Programme = { shown: nothing, waiting: [] }

/** At most so many events wait: publishers may announce without end. */
const mostWaiting = 200

/** Takes in an event, which is shown by `settle`. */
export function take({ shown, waiting }: Programme, event: unknown): Programme {
  return { shown, waiting: [...waiting, event].slice(-mostWaiting) }
}

/** Shows the events whose time has come. `now`: the hub's clock, milliseconds since the epoch. */
export function settle({ shown, waiting }: Programme, now: number): Programme {
  const isDue = (event: unknown) => (shownFrom(event) ?? now) <= now
  return {
    shown: waiting.filter(isDue).reduce<NowPlaying>((before, event) => after(before, event, now), shown),
    waiting: waiting.filter((event) => !isDue(event)),
  }
}

/** Until when a settled programme stays as it is, unless an event comes. */
export function staysUntil({ shown, waiting }: Programme, now: number): number {
  const ends = shown.controls.map(({ validUntil }) => validUntil).filter((time) => time > now)
  return Math.min(...ends, ...waiting.map((event) => shownFrom(event) ?? Infinity))
}
