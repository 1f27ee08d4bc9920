import type { HubTime } from './hub-time.ts'
import type { Session } from './session.ts'

/** When offline sessions are forgotten: by the time the hub has run, so that no clock that is set deletes them. */
export function createSessionExpiry(parts: { hubTime: HubTime; clock: () => number; expiryMs: number }) {
  const { hubTime, clock, expiryMs } = parts

  return {
    goOffline(session: Session): void {
      session.node = undefined
      session.disconnectedAt = clock()
      session.offlineAt = hubTime.now()
    },

    /** A node died before it could store since when it is offline, or was of an earlier release: since now. */
    settle(session: Session): void {
      session.disconnectedAt ??= clock()
      session.offlineAt ??= hubTime.now()
    },

    isUnsettled: ({ node, offlineAt }: Session): boolean => node === undefined && offlineAt === undefined,

    /** Its time is over, whether or not it has been swept up yet. */
    hasExpired: ({ node, offlineAt }: Session): boolean =>
      node === undefined && offlineAt !== undefined && hubTime.now() - offlineAt >= expiryMs,

    /** As of now, by the wall clock; undefined while its client is connected. */
    expiresAt: ({ node, offlineAt = hubTime.now() }: Session): number | undefined =>
      node === undefined ? clock() + expiryMs - (hubTime.now() - offlineAt) : undefined,
  }
}
