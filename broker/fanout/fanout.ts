import type { KeepingLimits } from '../../journal/keeping.ts'
import { openJournalAndViews } from '../../journal/open.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { Access } from '../login/access.ts'
import { createOutgoing } from '../session/outgoing-qos2.ts'
import { createReturnTurns } from '../session/return-turns.ts'
import { defaultBounds, type SessionBounds } from '../session/session.ts'
import { createRoutes } from '../session/subscriptions.ts'
import { createAcknowledging } from './acknowledging.ts'
import { createBridges } from './bridges.ts'
import { createCatchingUp } from './catching-up.ts'
import { createDistribution } from './distribution.ts'
import { createSessionReading } from './reading.ts'
import { createSending } from './sending.ts'

export type FanOut = Awaited<ReturnType<typeof openFanOut>>

export type FanOutLimits = KeepingLimits & Partial<typeof defaultBounds>

/** Opens the journal, and the parts that bring its messages to connected clients. */
export async function openFanOut(
  parts: Parameters<typeof openJournalAndViews>[0] & {
    access: Pick<Access, 'mayReceive'>
    limits: FanOutLimits
    log: Log
    metrics: Metrics
  },
) {
  const { store, access, limits, clock, log, metrics } = parts
  const { mayReceive } = access
  const bounds: SessionBounds = { ...defaultBounds, ...limits }
  const routes = createRoutes()
  const views = await openJournalAndViews(parts)
  const { journal, retained, returnable } = views
  const outgoing = createOutgoing(store)
  const { maxInFlight, inFlightWindow } = bounds
  const sending = createSending({ outgoing, retained, maxInFlight, log, metrics })
  const turns = createReturnTurns()
  const catchingUp = createCatchingUp({
    journal,
    returnable,
    outgoing,
    sending,
    turns,
    mayReceive,
    bounds,
    clock,
    metrics,
  })
  const { acknowledge } = createAcknowledging({ outgoing, sending, catchingUp, inFlightWindow })
  const reading = createSessionReading({ head: journal.head(), sending, catchingUp, bounds, metrics })
  const bridges = createBridges({ retained, mayReceive, sent: () => distribution.sent('others') })
  const distribution = createDistribution({
    store,
    journal,
    retained,
    returnable,
    reading,
    routes,
    bridges,
    mayReceive,
    clock,
    metrics,
  })
  return { ...views, ...distribution, routes, outgoing, reading, turns, bridges, acknowledge, bounds }
}
