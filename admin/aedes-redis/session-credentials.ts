import { type Credential, hasEnded } from '../../acl/credential.ts'
import { cut } from '../../event/cut.ts'
import { refusal } from '../../operations/errors.ts'

/** Longest beginning of a client id that is tried as a user name. */
const maxNameLength = 100

/**
 * Finds the credential of a session by its client id, because Aedes stores no user names.
 * - A line `client id,user name` names the user. `*` at the end of a client id stands for any ending. A line without
 *   `*` goes first, then the line with the longest beginning.
 * - If no line fits, the client id must be a user name. It may also begin with a user name and a separator, such as
 *   `kiosk.3`. A separator is neither letter nor digit. The longest user name counts.
 */
export function createSessionCredentials(
  lines: readonly string[],
  parts: { credential: (username: string) => Credential | undefined; now: () => number },
) {
  const exact = new Map<string, string>()
  const beginnings = new Map<string, string>()
  for (const [index, line] of lines.entries()) {
    const comma = line.lastIndexOf(',')
    const [clientId, username] = [line.slice(0, comma), line.slice(comma + 1).trim()]
    if (comma < 1 || username === '') {
      const shown = JSON.stringify(cut(line, 100))
      throw refusal(`users: line ${index + 1} is ${shown}, expected a client id, a comma and a user name`)
    }
    if (clientId.endsWith('*')) beginnings.set(clientId.slice(0, -1), username)
    else exact.set(clientId, username)
  }
  let longest = -1
  for (const { length } of beginnings.keys()) longest = Math.max(longest, length)

  return {
    /** The credential of a session, or why there is none. */
    of(clientId: string): Credential | { why: string } {
      const listed = exact.get(clientId) ?? beginningOf(clientId)
      if (listed === undefined) return byName(clientId) ?? { why: 'no user name is known for it' }
      return valid(listed) ?? { why: `there is no credential ${JSON.stringify(listed)}` }
    },
  }

  function beginningOf(clientId: string): string | undefined {
    for (let length = Math.min(longest, clientId.length); length >= 0; length--) {
      const username = beginnings.get(clientId.slice(0, length))
      if (username !== undefined) return username
    }
    return undefined
  }

  function byName(clientId: string): Credential | undefined {
    for (let length = Math.min(maxNameLength, clientId.length); length > 0; length--) {
      const isEnd = length === clientId.length || /[^\p{L}\p{N}]/u.test(clientId.charAt(length))
      const found = isEnd ? valid(clientId.slice(0, length)) : undefined
      if (found) return found
    }
    return undefined
  }

  /** The credential of this name, if it has not ended. Temporary ones do not count. */
  function valid(username: string): Credential | undefined {
    const credential = parts.credential(username)
    if (!credential || credential.user !== undefined) return undefined
    return hasEnded(credential, parts.now()) ? undefined : credential
  }
}
