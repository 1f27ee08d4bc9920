import type { KeepingLimits } from '../../journal/keeping.ts'
import { openJournalAndViews } from '../../journal/open.ts'
import type { Store } from '../../store/store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Access } from '../login/access.ts'
import { createOutgoing } from '../session/outgoing-qos2.ts'
import { defaultBounds, type SessionBounds } from '../session/session.ts'
import { createSubscriptions, type Routes } from '../session/subscriptions.ts'
import { createDistribution } from './distribution.ts'
import { createReading } from './reading.ts'

export type FanOut = Awaited<ReturnType<typeof openFanOut>>

export type FanOutLimits = KeepingLimits & Partial<typeof defaultBounds>

/**
 * The journal, and the way of its messages to those who are connected: what the pipeline hands accepted events to. The
 * broker in front of the pipeline connects clients to it.
 */
export async function openFanOut(parts: {
  store: Store
  /** Of all nodes that share the store, one trims the journal. */
  isLeader: () => boolean
  access: Pick<Access, 'mayReceive'>
  limits: FanOutLimits
  clock: () => number
  log: Log
  metrics: Metrics
}) {
  const { store, access, limits, clock, log, metrics } = parts
  const { mayReceive } = access
  const bounds: SessionBounds = { ...defaultBounds, ...limits }
  const routes: Routes = { persistent: createSubscriptions(), live: createSubscriptions() }
  const views = await openJournalAndViews(parts)
  const { journal, retained, returnable } = views
  const outgoing = createOutgoing(store)
  const reading = createReading({
    ...{ journal, returnable, outgoing, mayReceive, bounds, clock, log, metrics },
  })
  const distribution = createDistribution({
    ...{ journal, retained, returnable, reading, routes, mayReceive, clock, metrics },
  })
  return { ...views, ...distribution, routes, outgoing, reading, bounds }
}
