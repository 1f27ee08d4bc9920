import { createCollection } from '../../store/collection.ts'
import { storeKeys } from '../../store/keys.ts'
import { createLock } from '../../store/lock.ts'
import type { Store } from '../../store/store.ts'
import type { LastRequest } from './last-requests.ts'
import { type Announcement, type ApiTrack, checkAnnouncement, type TrackStatus, tracks } from './track.ts'
import type { RouteTraffic, Traffic } from './traffic.ts'

export type Lifecycle = Awaited<ReturnType<typeof createLifecycle>>

interface TrackReport extends TrackStatus {
  /** Requests of the last 7 days and today. */
  requests: number
  traffic: Omit<RouteTraffic, 'track'>[]
  /** The last request of each user to the track, the newest first. */
  left: Omit<LastRequest, 'track'>[]
}

/** Days without a request before a track may be retired (design.md §9). */
const quietDays = 7

/** Takes the tracks of the HTTPS API out of service: live → deprecated → gone (service.md §9). */
export async function createLifecycle(parts: {
  store: Store
  traffic: Traffic
  clock: () => number
  /** On `test`, operators may announce a sunset that has passed already. */
  stage: 'test' | 'prod'
}) {
  const { store, traffic, clock, stage } = parts
  const collection = await createCollection<TrackStatus>(store, storeKeys.lifecycle)
  // One change at a time: an announcement must not bring back a track that was just retired.
  const inLock = await createLock(store, 'lifecycle')
  const retired: ((track: ApiTrack) => void)[] = []
  collection.onChanged((_key, before, after) => {
    if (after?.state === 'gone' && before?.state !== 'gone') tellRetired(after.track)
  })

  return {
    /** The present state of a track. */
    of,
    /** Counts a request as a use of a track. */
    count: traffic.count,
    status: (): TrackReport[] => tracks.map(report),

    /** Announces the sunset of a track, or changes the sunset that was announced. */
    async announce(announcement: Announcement): Promise<TrackReport | { error: string }> {
      const checked = checkAnnouncement(announcement)
      if ('error' in checked) return checked
      const { track, link } = announcement
      const sunset = checked.at.toISOString()
      return inLock(async (held) => {
        const before = of(track)
        if (before.state === 'gone') return { error: `${track} is gone since ${before.retiredAt}` }
        if (stage === 'prod' && checked.at.getTime() <= clock()) {
          return { error: `sunset must lie in the future on stage prod, not at ${sunset}` }
        }
        const announcedAt = before.announcedAt ?? new Date(clock()).toISOString()
        const dates = { announcedAt, sunset, retiredAt: null }
        await collection.put(track, { ...before, state: 'deprecated', link, ...dates }, held)
        return report(track)
      })
    },

    /** Retires a track whose sunset has passed and that had no requests for 7 days. */
    retire: (track: ApiTrack): Promise<TrackReport | { error: string }> =>
      inLock(async (held) => {
        const before = of(track)
        const error = reasonAgainstRetiring(before, traffic.of(track, quietDays), clock())
        if (error !== undefined) return { error }
        const retiredAt = new Date(clock()).toISOString()
        await collection.put(track, { ...before, state: 'gone', retiredAt, brownoutUntil: null }, held)
        tellRetired(track)
        return report(track)
      }),

    /** Switches a deprecated track off for some seconds, so that its users notice; 0 switches it on again. */
    brownout: (track: ApiTrack, seconds: number): Promise<TrackReport | { error: string }> =>
      inLock(async (held) => {
        const before = of(track)
        if (before.state === 'gone') return { error: `${track} is gone since ${before.retiredAt}` }
        if (before.state === 'live') return { error: `${track} must be announced first` }
        const brownoutUntil = seconds > 0 ? new Date(clock() + seconds * 1000).toISOString() : null
        await collection.put(track, { ...before, brownoutUntil }, held)
        return report(track)
      }),

    /** Seconds for which a track is still switched off. Undefined: it is on. */
    secondsOff(track: ApiTrack): number | undefined {
      const left = Date.parse(of(track).brownoutUntil ?? '') - clock()
      return left > 0 ? Math.ceil(left / 1000) : undefined
    },

    /**
     * Tells a part of the hub, such as webhooks, whether and when its track was retired. `onRetired` also reports a
     * retirement by another node.
     */
    trackOf: (track: ApiTrack) => ({
      retiredAt: (): string | undefined => {
        const { state, retiredAt } = of(track)
        return state === 'gone' ? (retiredAt ?? undefined) : undefined
      },
      onRetired: (listener: () => void): void => {
        retired.push((which) => {
          if (which === track) listener()
        })
      },
    }),
  }

  function tellRetired(track: ApiTrack): void {
    for (const listener of retired) listener(track)
  }

  function of(track: ApiTrack): TrackStatus {
    const live = {
      track,
      state: 'live',
      announcedAt: null,
      sunset: null,
      link: null,
      retiredAt: null,
      brownoutUntil: null,
    } as const
    return { ...live, ...collection.get(track) }
  }

  function report(track: ApiTrack): TrackReport {
    const counters = traffic.of(track, quietDays)
    return {
      ...of(track),
      requests: sum(counters),
      traffic: counters.map(({ route, day, requests }) => ({ route, day, requests })),
      left: traffic.left(track),
    }
  }
}

/** Why a track cannot be retired now. Undefined: it can. */
function reasonAgainstRetiring(
  { track, state, sunset, retiredAt }: TrackStatus,
  counters: readonly RouteTraffic[],
  now: number,
): string | undefined {
  if (state === 'gone') return `${track} is gone since ${retiredAt}`
  if (sunset === null) return `${track} must be announced first`
  const reasons: string[] = []
  if (Date.parse(sunset) > now) reasons.push(`its sunset is ${sunset}`)
  if (counters.length > 0) {
    const numbers = counters.map(({ day, route, requests }) => `${day} ${route}: ${requests}`)
    reasons.push(
      `it had ${sum(counters)} requests in the last ${quietDays} days (${numbers.slice(0, 20).join(', ')})`,
    )
  }
  return reasons.length > 0 ? `${track} stays: ${reasons.join('; ')}` : undefined
}

function sum(counters: readonly RouteTraffic[]): number {
  return counters.reduce((total, { requests }) => total + requests, 0)
}
