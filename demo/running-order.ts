import { type DemoEvent, malformed, next, playing, radiotext, trafficAnnouncement } from './events.ts'
import type { Verdict } from './ledger.ts'
import type { Station } from './programme.ts'

/** Publishes an event as the broadcaster of a station. */
type Publish = (broadcaster: Station, event: DemoEvent, expected: Verdict) => void

/** At most one in this many events comes from `specials`. The others are track events. */
const specialEvery = 4

/**
 * Publishes events of the stations in turn, with special events in between. A round is one pass through the special
 * events.
 */
export function createRunningOrder(
  stations: readonly [Station, Station, ...Station[]],
  others: readonly Station[],
  publish: Publish,
) {
  const now = createClock()
  const [first, second] = stations
  const desks = stations.map((station) => createDesk(station, now, publish))
  const specials = [
    () => publish(first, trafficAnnouncement(first, true, now()), 'published'),
    () => publish(second, radiotext(second, 'Gipfelklang – Studio: 0800 555 0123', now()), 'published'),
    // Blocked: the second station publishes for a livestream of the first.
    () => publish(second, playing(first, second.playlist[0], 'foreign', now()), 'blocked'),
    () => publish(first, malformed(first, first.playlist[0], 'malformed', now()), 'invalid'),
    () => publish(first, trafficAnnouncement(first, false, now()), 'published'),
  ]
  let steps = 0
  let tracks = 0
  let shown = 0
  let opened = 0

  return {
    /** Brings the next of the other stations on air, in the middle of an element. */
    open(): void {
      const station = others[opened]
      if (!station) return
      const [element] = station.playlist
      const begun = ((opened * 37) % 90) / 100
      publish(
        station,
        playing(station, element, `open-${opened}`, now() - element.length * 1000 * begun),
        'published',
      )
      opened++
    },

    /** Publishes the next event. */
    advance(): void {
      const step = steps++
      // After each round, no special event comes for as long as a round takes.
      const turn = Math.floor(step / specialEvery) % (specials.length * 2)
      const special = step % specialEvery === specialEvery - 1 ? specials[turn] : undefined
      if (special) shown++
      const act = special ?? desks[tracks++ % desks.length]
      act?.()
    },

    /** At the end: publishes the special events that the present round still lacks. */
    complete(): void {
      const begun = shown % specials.length
      if (shown > 0 && begun === 0) return
      for (const special of specials.slice(begun)) special()
    },
  }
}

/** Returns a function that publishes a station's next event: `playing` and `next` alternate. */
function createDesk(station: Station, now: () => number, publish: Publish): () => void {
  const { playlist } = station
  const prefix = station.livestreams[0].institution.acronym.toLowerCase()
  let position = 0
  let announced = false
  let nextStart = 0

  return () => {
    const element = playlist[position % playlist.length] ?? playlist[0]
    if (!announced) {
      publish(station, playing(station, element, `${prefix}-${position}`, now()), 'published')
      announced = true
      return
    }
    position++
    announced = false
    const following = playlist[position % playlist.length] ?? playlist[0]
    // Elements end early here. Without `nextStart + 1`, start times would not always increase.
    nextStart = Math.max(nextStart + 1, now() + element.length * 1000)
    publish(station, next(station, following, `${prefix}-${position}`, nextStart), 'published')
  }
}

/** Milliseconds since the epoch. No time comes twice, because `keyOf` uses the time. */
function createClock(): () => number {
  let last = 0
  return () => {
    last = Math.max(last + 1, Date.now())
    return last
  }
}
