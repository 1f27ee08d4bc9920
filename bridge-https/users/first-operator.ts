import { isSameSecret, newToken } from './passwords.ts'
import type { Users } from './users.ts'

export type FirstOperator = ReturnType<typeof createFirstOperator>

const lifetimeMs = 3600 * 1000

/**
 * The one-time link with which a new node gets its first operator. The token is in memory alone. The link ends with the
 * process, after an hour, or when there is an operator.
 */
export function createFirstOperator(parts: { users: Pick<Users, 'list'>; clock: () => number }) {
  const { users, clock } = parts
  const token = newToken()
  const endsAt = clock() + lifetimeMs
  let isTaken = false

  return {
    /** The token of the link. Undefined: the link does not work any more. */
    token: (): string | undefined => (isOpen() ? token : undefined),

    /** Uses up the link. False: the token is wrong, or the link has ended. */
    take(given: string): boolean {
      if (!isOpen() || !isSameSecret(given, token)) return false
      isTaken = true
      return true
    },

    /** Makes the link work again, because no account was made after all. */
    giveBack(): void {
      isTaken = false
    },
  }

  function isOpen(): boolean {
    const hasOperator = users.list().some(({ permissions }) => permissions.includes('operate'))
    return !isTaken && clock() < endsAt && !hasOperator
  }
}
