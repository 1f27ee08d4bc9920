import { randomInt } from 'node:crypto'
import { storeKeys } from '../store/keys.ts'
import type { Change, Store } from '../store/store.ts'
import type { Permissions } from './permissions.ts'

export type Usernames = Awaited<ReturnType<typeof createUsernames>>

/**
 * Makes usernames such as `pub-{label}-{issued}` (design.md §5; `read-` for readers, open.md §4). `issued` is the present second in UTC, or the next
 * free one. If `issued` lies in the future, the name is stored until that second has passed. Otherwise a restarted node
 * could give a revoked credential's name out again (docs/decisions, "A user name is never given to two
 * credentials").
 */
export async function createUsernames(store: Store, exists: (username: string) => boolean) {
  const place = storeKeys.credentialName.prefix
  const ahead = new Set<string>()
  for await (const [key] of store.range(place)) ahead.add(key.slice(place.length))
  const given = new Set(ahead)
  return {
    given: (username: string): void => void given.add(username),

    /** A name for a new credential, and the changes that reserve it. */
    next({ role, label }: Permissions, now: number): { username: string; changes: readonly Change[] } {
      for (let time = now; ; time += 1000) {
        const username = `${prefixes[role]}-${label}-${secondOf(time)}`
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

const prefixes = { publisher: 'pub', subscriber: 'sub', reader: 'read' } as const

const secondLength = 14

/** With 16 of 36 characters there are more than 2^82 names, so none is made twice. */
const randomLength = 16
const randomCharacters = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** A random name for a temporary credential: pages need more than one name per second. */
export function temporaryUsername(label: string): string {
  const random = Array.from({ length: randomLength }, () => randomCharacters[randomInt(36)])
  return `sub-${label}-${random.join('')}`
}

/** UTC as YYYYMMDDHHMMSS. */
function secondOf(time: number): string {
  return new Date(time).toISOString().replace(/\D/g, '').slice(0, secondLength)
}
