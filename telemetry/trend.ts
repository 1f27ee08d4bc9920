import type { Metrics } from './metrics.ts'

/** The figures of a node for one stretch of time. */
interface TrendSample {
  /** End of the stretch, ISO 8601. */
  at: string
  seconds: number
  /** Events that were decided in the stretch, by outcome. */
  events: Record<string, number>
  /** Messages that were written to subscribers in the stretch. */
  deliveries: number
  /** Open MQTT connections at the end of the stretch. */
  connections: number
  /** Percentiles of how long the events published in the stretch took, milliseconds. Null: none was published. */
  p50: number | null
  p99: number | null
  /** Events published in the stretch that took longer than the budget. */
  exceeded: number
}

/** Totals since the node was started. */
interface Totals {
  time: number
  measured: number
  events: Record<string, number>
  deliveries: number
  exceeded: number
}

export type Trend = ReturnType<typeof startTrend>

const everySeconds = 10
/** Number of samples in one hour. */
const keptSamples = 360
const nothing: Omit<Totals, 'time'> = { measured: 0, events: {}, deliveries: 0, exceeded: 0 }

/**
 * Records the last hour of this node in memory, one sample every ten seconds, for the console. `clock`: the wall clock,
 * for the time of a sample.
 */
export function startTrend({ metrics, clock }: { metrics: Metrics; clock: () => number }) {
  const samples: TrendSample[] = []
  let before: Totals = { ...nothing, time: performance.now() }
  const timer = setInterval(() => void take(), everySeconds * 1000).unref()

  return {
    everySeconds,
    /** The samples, oldest first. */
    samples: (): readonly TrendSample[] => samples,
    /** Completes the current sample now, and begins the next. */
    take,
    close: (): void => clearInterval(timer),
  }

  async function take(): Promise<void> {
    const after = await totals()
    const measured = after.measured - before.measured
    const { p50, p99 } = metrics.latency.summary(measured)
    samples.push({
      at: new Date(clock()).toISOString(),
      seconds: Math.round(after.time - before.time) / 1000,
      events: Object.fromEntries(
        Object.entries(after.events).map(([outcome, count]) => [
          outcome,
          count - (before.events[outcome] ?? 0),
        ]),
      ),
      deliveries: after.deliveries - before.deliveries,
      connections: (await metrics.connections.get()).values[0]?.value ?? 0,
      p50: measured === 0 ? null : p50,
      p99: measured === 0 ? null : p99,
      exceeded: after.exceeded - before.exceeded,
    })
    if (samples.length > keptSamples) samples.shift()
    before = after
  }

  async function totals(): Promise<Totals> {
    const [events, deliveries, exceeded] = await Promise.all([
      metrics.events.get(),
      metrics.deliveries.get(),
      metrics.budgetExceeded.get(),
    ])
    return {
      time: performance.now(),
      measured: metrics.latency.summary(0).count,
      events: Object.fromEntries(events.values.map(({ labels, value }) => [String(labels.outcome), value])),
      deliveries: deliveries.values[0]?.value ?? 0,
      exceeded: exceeded.values[0]?.value ?? 0,
    }
  }
}
