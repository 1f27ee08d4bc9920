import { originOf } from '../../listener/origin.ts'
import type { Store } from '../../store/store.ts'
import { createLimiter } from './limiter.ts'
import type { User } from './user.ts'
import type { KnownUser } from './users.ts'

export type Strangers = ReturnType<typeof createStrangers>

/** Maximum number of requests without a log-in, per minute and address. Many people may share one address. */
const perMinute = 600

/** A user without an account, who may only read. No other user has such an id: those are UUIDs. */
export function withoutAccount(name: string): KnownUser {
  return {
    userId: name,
    email: name,
    institutionId: '',
    permissions: ['subscribe'],
    emailVerified: false,
    createdAt: new Date(0).toISOString(),
    generation: 0,
  }
}

/** The user for all visitors of a public page. */
const stranger = withoutAccount('stranger')

/** Admits strangers, which are clients without a log-in, with a limit per address (`HUB_PUBLIC_PAGE`). */
export function createStrangers({ store, most = perMinute }: { store?: Store; most?: number }) {
  const limiter = createLimiter(store, 'strangers', { points: most, seconds: 60 })
  return {
    /** The user for a request without a log-in, or the seconds that its address has to wait. */
    async admit(address: string): Promise<{ user: KnownUser } | { retryAfter: number }> {
      const origin = originOf(address).address
      const retryAfter = await limiter.take(origin)
      if (retryAfter !== undefined) return { retryAfter }
      limiter.tellOthers(origin)
      return { user: stranger }
    },
  }
}

/** Whether a user was admitted without an account. */
export function isStranger({ userId }: Pick<User, 'userId'>): boolean {
  return userId === stranger.userId
}
