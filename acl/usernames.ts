import type { Change, Store } from '../store/store.ts'
import type { Permissions } from './permissions.ts'

export type Usernames = Awaited<ReturnType<typeof createUsernames>>

/**
 * `pub-{label}-{issued}`, issued in UTC to the second, the next free one if taken (design.md §5).
 * A name is not given out again even after it was revoked: logs name it. Those of many at once run ahead of the clock,
 * and are stored until their second has passed, because a node that starts would come to it again.
 */
export async function createUsernames(store: Store, exists: (username: string) => boolean) {
  const place = 'credential-name/'
  const ahead = new Set<string>()
  for await (const [key] of store.range(place)) ahead.add(key.slice(place.length))
  const given = new Set(ahead)
  return {
    given: (username: string): void => void given.add(username),

    /** A name for a new credential, and the changes that reserve it. */
    next({ role, label }: Permissions, now: number): { username: string; changes: readonly Change[] } {
      const prefix = role === 'publisher' ? 'pub' : 'sub'
      for (let time = now; ; time += 1000) {
        const username = `${prefix}-${label}-${secondOf(time)}`
        if (given.has(username) || exists(username)) continue
        given.add(username)
        const changes = passed(now)
        if (time > now) {
          ahead.add(username)
          changes.push({ put: place + username, value: '' })
        }
        return { username, changes }
      }
    },
  }

  function passed(now: number): Change[] {
    const names = [...ahead].filter((username) => username.slice(-secondLength) < secondOf(now))
    for (const username of names) ahead.delete(username)
    return names.map((username) => ({ del: place + username }))
  }
}

const secondLength = 14

/** UTC as YYYYMMDDHHMMSS. */
function secondOf(time: number): string {
  return new Date(time).toISOString().replace(/\D/g, '').slice(0, secondLength)
}
