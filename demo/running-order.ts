import { type DemoEvent, malformed, next, playing, radiotext, trafficAnnouncement } from './events.ts'
import type { Verdict } from './ledger.ts'
import type { Station } from './programme.ts'

/** Publishes an event as the broadcaster of a station. */
type Publish = (broadcaster: Station, event: DemoEvent, expected: Verdict) => void

/** One in so many events is something else than a track. */
const specialEvery = 4

/**
 * The events of all stations, one at a time. The stations alternate with `playing` and `next`. In between come a traffic
 * announcement, radiotext and two events that must be refused.
 */
export function createRunningOrder(stations: readonly [Station, Station, ...Station[]], publish: Publish) {
  const now = createClock()
  const [first, second] = stations
  const desks = stations.map((station) => createDesk(station, now, publish))
  const specials = [
    () => publish(first, trafficAnnouncement(first, true, now()), 'published'),
    () => publish(second, radiotext(second, 'Gipfelklang – Studio: 0800 555 0123', now()), 'published'),
    // A foreign livestream in the station's own inbox.
    () => publish(second, playing(first, second.playlist[0], 'foreign', now()), 'blocked'),
    () => publish(first, malformed(first, first.playlist[0], 'malformed', now()), 'invalid'),
    () => publish(first, trafficAnnouncement(first, false, now()), 'published'),
  ]
  let steps = 0
  let tracks = 0
  let shown = 0

  return {
    /** The next event. */
    advance(): void {
      const step = steps++
      // Every other round has no specials.
      const turn = Math.floor(step / specialEvery) % (specials.length * 2)
      const special = step % specialEvery === specialEvery - 1 ? specials[turn] : undefined
      if (special) shown++
      const act = special ?? desks[tracks++ % desks.length]
      act?.()
    },

    /** Completes a run that was cut short: ends the round of specials that has begun, or runs one if there was none. */
    complete(): void {
      const begun = shown % specials.length
      if (shown > 0 && begun === 0) return
      for (const special of specials.slice(begun)) special()
    },
  }
}

/** One station: its elements in turn, each announced as `next` before it is `playing`. */
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
    // Here elements last moments; their times must still grow.
    nextStart = Math.max(nextStart + 1, now() + element.length * 1000)
    publish(station, next(station, following, `${prefix}-${position}`, nextStart), 'published')
  }
}

/** Milliseconds since the epoch, never the same twice: the time is part of what events are recognised by. */
function createClock(): () => number {
  let last = 0
  return () => {
    last = Math.max(last + 1, Date.now())
    return last
  }
}
