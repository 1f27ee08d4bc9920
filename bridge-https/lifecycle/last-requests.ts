import { storeKeys } from '../../store/keys.ts'
import { createLastSeen } from '../../store/nodes/last-seen.ts'
import type { Store } from '../../store/store.ts'
import type { ApiTrack } from './track.ts'

/** A user of the HTTPS API, and how an operator can reach this user. */
export interface LastAsker {
  userId: string
  email: string
  institutionId: string
}

export interface LastRequest extends LastAsker {
  track: ApiTrack
  route: string
  /** ISO 8601 */
  lastAt: string
}

const keptMs = 90 * 24 * 3600 * 1000

/** Keeps the last request of each user to each track for 90 days. Operators learn whom to tell of a retirement. */
export async function createLastRequests(parts: {
  store: Store
  clock: () => number
  onStoreFailure: (error: unknown) => void
}) {
  const { clock } = parts
  const since = new Date(clock() - keptMs).toISOString()
  const lastSeen = await createLastSeen<LastRequest>({ ...parts, family: storeKeys.lastRequest, since })

  return {
    note(track: ApiTrack, route: string, { userId, email, institutionId }: LastAsker): void {
      const lastAt = new Date(clock()).toISOString()
      lastSeen.note(`${track} ${userId}`, { track, route, userId, email, institutionId, lastAt })
    },

    /** The last request of each user for a track, the newest first. */
    of: (track: ApiTrack): Omit<LastRequest, 'track'>[] =>
      lastSeen
        .all()
        .filter((one) => one.track === track)
        .sort((a, b) => (a.lastAt < b.lastAt ? 1 : -1))
        .map(({ institutionId, email, userId, lastAt, route }) => ({
          institutionId,
          email,
          userId,
          lastAt,
          route,
        })),

    close: lastSeen.close,
  }
}
