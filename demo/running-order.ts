import { type DemoEvent, malformed, next, playing, radiotext, trafficAnnouncement } from './events.ts'
import type { Verdict } from './ledger.ts'
import type { Station } from './programme.ts'

/** Publishes an event as the broadcaster of a station. */
type Publish = (broadcaster: Station, event: DemoEvent, expected: Verdict) => void

/**
 * One in this many events is special: an announcement, radiotext, or an event that must be refused. The others are
 * track events.
 */
const specialEvery = 4

/**
 * Publishes the events of all stations, one at a time. The stations take turns, and each of them alternates between
 * `playing` and `next`. The special events come in between. A round is one pass through all special events.
 */
export function createRunningOrder(stations: readonly [Station, Station, ...Station[]], publish: Publish) {
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

  return {
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

    /**
     * Called at the end: publishes the special events that the present round still lacks, or all of them if none has
     * been published yet.
     */
    complete(): void {
      const begun = shown % specials.length
      if (shown > 0 && begun === 0) return
      for (const special of specials.slice(begun)) special()
    },
  }
}

/** Returns a function that publishes the next event of a station. Each element is `next` before it is `playing`. */
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
    // The demonstration plays each element only for moments. The announced start times must still increase.
    nextStart = Math.max(nextStart + 1, now() + element.length * 1000)
    publish(station, next(station, following, `${prefix}-${position}`, nextStart), 'published')
  }
}

/** A clock in milliseconds since the epoch that never gives the same time twice: the time is part of an event's key. */
function createClock(): () => number {
  let last = 0
  return () => {
    last = Math.max(last + 1, Date.now())
    return last
  }
}
