import { createLastSeen } from '../../store/nodes/last-seen.ts'
import type { Store } from '../../store/store.ts'
import type { Track } from './track.ts'

/** A user of the HTTPS API, with the data that an operator needs to tell this user that routes retire. */
export interface Asker {
  userId: string
  email: string
  institutionId: string
}

/** A user's last request to an API track, which is a group of routes that retire together. */
export interface LastRequest extends Asker {
  track: Track
  route: string
  /** ISO 8601 */
  lastAt: string
}

const keptMs = 90 * 24 * 3600 * 1000

/**
 * Remembers the last request of each user for each track, for 90 days. From these requests operators see who still uses
 * a track, and whom to write to.
 */
export async function createLastRequests(parts: {
  store: Store
  clock: () => number
  onStoreFailure: (error: unknown) => void
}) {
  const { clock } = parts
  const since = new Date(clock() - keptMs).toISOString()
  const lastSeen = await createLastSeen<LastRequest>({ ...parts, name: 'last-request', since })

  return {
    note(track: Track, route: string, { userId, email, institutionId }: Asker): void {
      const lastAt = new Date(clock()).toISOString()
      lastSeen.note(`${track} ${userId}`, { track, route, userId, email, institutionId, lastAt })
    },

    /** The last request of each user for a track, the newest first. */
    of: (track: Track): Omit<LastRequest, 'track'>[] =>
      lastSeen
        .all()
        .filter((one) => one.track === track)
        .sort((a, b) => (a.lastAt < b.lastAt ? 1 : -1))
        .map(({ institutionId, email, userId, lastAt, route }) => ({
          ...{ institutionId, email, userId, lastAt, route },
        })),

    close: lastSeen.close,
  }
}
