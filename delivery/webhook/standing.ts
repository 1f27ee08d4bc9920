import { namedKeys, storeKeys } from '../../store/keys.ts'
import type { Change, Store } from '../../store/store.ts'
import type { AttemptOutcome } from '../target.ts'
import type { PushSubscription } from './subscription.ts'

export type Standings = Awaited<ReturnType<typeof createStandings>>

/** Whether deliveries to a webhook succeed, as its institution sees it. */
interface Standing {
  state: 'active' | 'retrying' | 'disabled'
  /** When this state began, ISO 8601. */
  since: string
  /** Why `state` is not `active`; null if it is. */
  reason: string | null
}

/** The hub disables a webhook that has answered only 410 for this time, milliseconds (design.md §10). */
export const goneMs = 3_600_000
/**
 * Each further 410 adds at most this many milliseconds to `gone.ms`: enough for the longest pause after a 410 (600 s)
 * and the attempt that follows. Without this bound, a jump of the clock or a stop of the hub could disable a webhook.
 */
const maxStepMs = 11 * 60_000

interface StoredStanding extends Omit<Standing, 'state'> {
  state: 'active' | 'retrying'
  /**
   * Set while the webhook answers only 410. `at`: the last 410, milliseconds since the epoch. `ms`: how long so far,
   * milliseconds.
   */
  gone?: { at: number; ms: number }
}

/**
 * Keeps the standing of each webhook, stored with the outcome of an attempt. Nothing is stored for a webhook that has
 * always worked.
 */
export async function createStandings(parts: {
  store: Store
  clock: () => number
  /** Whether a subscription has this name. */
  isKnown: (name: string) => boolean
}) {
  const { store, clock, isKnown } = parts
  const standings = new Map<string, StoredStanding>()
  const take = (key: string, value: Buffer | undefined) => {
    if (value) standings.set(nameOf(key), JSON.parse(value.toString()))
    else standings.delete(nameOf(key))
  }
  for await (const [key, value] of store.range(prefix)) take(key, value)
  store.onOthers(prefix, take)

  return {
    /** The standing of a webhook, as its institution sees it. */
    of(subscription: PushSubscription): Standing {
      const { name, createdAt, disabledAt, pausedAt } = subscription
      // Clients know three states (design.md §9): a pause is shown as `disabled`.
      if (pausedAt !== undefined)
        return { state: 'disabled', since: pausedAt, reason: pausedReason(subscription) }
      if (disabledAt !== undefined) return { state: 'disabled', since: disabledAt, reason: 'answered 410' }
      const { state, since, reason } = standings.get(name) ?? fresh(createdAt)
      return { state, since, reason }
    },

    /**
     * The changes that record an outcome, for the commit of its attempt. `isAside`: an item that is set aside was
     * refused again, so `state` stays.
     */
    noted(name: string, outcome: AttemptOutcome, isAside: boolean): Change[] {
      const before = standings.get(name)
      const now = clock()
      if (outcome.result === 'acknowledged') {
        return before === undefined || isActive(before) ? [] : put(name, fresh(toIso(now)))
      }
      if (isAside) return forgetGone(name)
      const gone = outcome.result === 'gone' ? { gone: goneBy(before?.gone, now) } : {}
      const since = before?.state === 'retrying' ? before.since : toIso(now)
      const next: StoredStanding = { state: 'retrying', since, reason: outcome.reason, ...gone }
      return before?.reason === next.reason && !before?.gone && !next.gone ? [] : put(name, next)
    },

    /** The changes after a test message: `gone` is cleared, unless the status is 410. Null: no answer. */
    tested: (name: string, status: number | null): Change[] => (status === 410 ? [] : forgetGone(name)),

    /** Whether a webhook has answered only 410 for `goneMs`. */
    isGone: (name: string): boolean => (standings.get(name)?.gone?.ms ?? 0) >= goneMs,

    /** The changes that make a standing active again, from now on. */
    madeActive: (name: string): Change[] => put(name, fresh(toIso(clock()))),

    /**
     * Removes a standing, even one that this node does not know, in the commit that `commit` makes. If it resolves with
     * false, it has made none.
     */
    async removeIn<Made>(name: string, commit: (removal: Change) => Promise<Made>): Promise<Made> {
      const made = await commit({ del: keyOf(name) })
      if (made !== false) standings.delete(name)
      return made
    },

    /** Removes standings without a subscription: an attempt can end during a removal. */
    async tidy(): Promise<void> {
      const left = [...standings.keys()].filter((name) => !isKnown(name))
      if (left.length > 0) await store.commit(left.map((name) => ({ del: keyOf(name) })))
      for (const name of left) standings.delete(name)
    },
  }

  function forgetGone(name: string): Change[] {
    const { gone, ...rest } = standings.get(name) ?? {}
    return gone && 'state' in rest ? put(name, rest) : []
  }

  /** Changes memory at once: the outcome has happened, even if the commit fails. */
  function put(name: string, standing: StoredStanding): Change[] {
    standings.set(name, standing)
    return [{ put: keyOf(name), value: JSON.stringify(standing) }]
  }
}

const { prefix, keyOf, nameOf } = namedKeys(storeKeys.pushStanding)

function goneBy(before: StoredStanding['gone'], now: number): NonNullable<StoredStanding['gone']> {
  if (!before) return { at: now, ms: 0 }
  return { at: now, ms: before.ms + Math.min(maxStepMs, Math.max(0, now - before.at)) }
}

function fresh(since: string): StoredStanding {
  return { state: 'active', since, reason: null }
}

/** Tells the owner of a paused webhook who ends the pause: a test message does not. */
export function pausedReason({ isPausedByOwner }: Pick<PushSubscription, 'isPausedByOwner'>): string {
  return `paused by the ${isPausedByOwner ? 'institution' : 'operator'}`
}

function isActive({ state, gone }: StoredStanding): boolean {
  return state === 'active' && gone === undefined
}

function toIso(time: number): string {
  return new Date(time).toISOString()
}
