import type { Publish } from '../connection/wire.ts'

/** What another node has just stored is sent within moments, or is for an offline session. */
const maxEntries = 2_000
const maxBytes = 8 * 1024 * 1024

/** Bodies that other nodes stored, so that the sessions of this one do not all ask the store for them. */
export function createBodyCache() {
  const bodies = new Map<number, { publish: Publish; bytes: number }>()
  let total = 0

  function forget(sequence: number): void {
    total -= bodies.get(sequence)?.bytes ?? 0
    bodies.delete(sequence)
  }

  return {
    get: (sequence: number): Publish | undefined => bodies.get(sequence)?.publish,
    keep(sequence: number, publish: Publish, bytes: number): void {
      forget(sequence)
      bodies.set(sequence, { publish, bytes })
      total += bytes
      for (const [oldest] of bodies) {
        if (bodies.size <= maxEntries && total <= maxBytes) break
        forget(oldest)
      }
    },
    forget,
  }
}
