import { type Figures, percentiles, sum } from './figures.ts'

/** The figures of a hub for one stretch of time. */
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

export type Trend = ReturnType<typeof startTrend>

/** Time between two samples, seconds. */
export const trendSeconds = 10
/** Number of samples in one hour. */
const keptSamples = 360
/** The figures of so many processes are kept: also of one that once does not answer in time. */
const keptProcesses = 128

/**
 * Records the last hour in memory, one sample every ten seconds, for the console. `figures`: those of each process of
 * the hub. `clock`: the wall clock, for the time of a sample.
 */
export function startTrend({ figures, clock }: { figures: () => Promise<Figures[]>; clock: () => number }) {
  const samples: TrendSample[] = []
  /** The last figures of each process, by its run. Those taken last are at the end. */
  const before = new Map<string, Figures>()
  let takenAt = performance.now()
  const timer = setInterval(() => void take(), trendSeconds * 1000).unref()

  return {
    /** The samples, oldest first. */
    samples: (): readonly TrendSample[] => samples,
    /** Completes the current sample now, and begins the next. */
    take,
    close: (): void => clearInterval(timer),
  }

  async function take(): Promise<void> {
    const each = await figures()
    const now = performance.now()
    const grown = each.map((after) => growth(before.get(after.run), after))
    const measured = grown.flatMap(({ samples }) => samples)
    const outcomes = new Set(grown.flatMap(({ events }) => Object.keys(events)))
    samples.push({
      at: new Date(clock()).toISOString(),
      seconds: Math.round(now - takenAt) / 1000,
      events: Object.fromEntries(
        [...outcomes].map((outcome) => [outcome, sum(grown, ({ events }) => events[outcome] ?? 0)]),
      ),
      deliveries: sum(grown, ({ deliveries }) => deliveries),
      connections: sum(each, ({ connections }) => connections),
      ...(measured.length === 0 ? { p50: null, p99: null } : percentiles(measured)),
      exceeded: sum(grown, ({ exceeded }) => exceeded),
    })
    if (samples.length > keptSamples) samples.shift()
    takenAt = now
    for (const after of each) keep(after)
  }

  function keep(after: Figures): void {
    before.delete(after.run)
    before.set(after.run, after)
    const [oldest] = before.keys()
    if (before.size > keptProcesses && oldest !== undefined) before.delete(oldest)
  }
}

/** What a process has counted since `before`. Undefined: since its start. */
function growth(before: Figures | undefined, after: Figures) {
  const since = (of: (figures: Figures) => number) => of(after) - (before ? of(before) : 0)
  const measured = since((figures) => figures.measured)
  return {
    events: Object.fromEntries(
      Object.keys(after.events).map((outcome) => [outcome, since(({ events }) => events[outcome] ?? 0)]),
    ),
    deliveries: since(({ deliveries }) => deliveries),
    exceeded: since(({ exceeded }) => exceeded),
    samples: after.samples.slice(Math.max(0, after.samples.length - measured)),
  }
}
