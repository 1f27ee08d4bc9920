import { isTemporary } from '../acl/principal.ts'
import { cut } from '../event/cut.ts'
import { checkTopicFilter } from '../event/topic.ts'
import type { Log } from '../telemetry/log.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createRareWarning } from '../telemetry/rare-warning.ts'
import type { Access } from './login/access.ts'
import type { Session } from './session/session.ts'

export type FilterRules = ReturnType<typeof createFilterRules>

/** A filter that the broker denies to a session, and why. */
export interface Denial {
  filter: string
  reason: string
}

/**
 * Maximum number of filters of a session with a temporary credential. The number is low: thousands of strangers can
 * have such sessions. A page that asks for such a credential cannot name more filters than this.
 */
const maxOfPages = 20

type Holder = Pick<Session, 'clientId' | 'principal' | 'subscriptions'>

/** Decides which filters a session gets. Counts denials, and logs them once a minute for each credential. */
export function createFilterRules(parts: {
  access: Pick<Access, 'maySubscribe'>
  /** Maximum number of filters of one session. */
  maxSubscriptions: number
  maxTopicLevels: number
  log: Log
  metrics: Metrics
}) {
  const { access, maxSubscriptions, maxTopicLevels, log, metrics } = parts
  const warn = createRareWarning(log, 'subscription denied')

  return { denialOf, report }

  /** Why a filter is denied to the session. Undefined: the filter is allowed. */
  function denialOf({ principal, subscriptions }: Holder, filter: string): string | undefined {
    const malformed = checkTopicFilter(filter)
    if (malformed !== undefined) return malformed
    if (filter.split('/').length > maxTopicLevels) return `it has more than ${maxTopicLevels} levels`
    const decision = access.maySubscribe(principal, filter)
    if (!decision.allowed) return decision.reason
    const most = isTemporary(principal) ? Math.min(maxOfPages, maxSubscriptions) : maxSubscriptions
    if (!subscriptions.has(filter) && subscriptions.size >= most) {
      return `the client has ${most} subscriptions already`
    }
    return undefined
  }

  /** Counts the denials of a packet, and logs one line for all of them. */
  function report({ clientId, principal }: Holder, denials: readonly Denial[]): void {
    const [first] = denials
    if (!first) return
    metrics.subscriptionsDenied.inc(denials.length)
    const { username } = principal
    const { reason } = first
    const filter = cut(first.filter, 200)
    warn(username, { clientId, username, filter, reason, denied: denials.length })
  }
}
