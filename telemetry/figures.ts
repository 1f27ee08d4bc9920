import { percentile } from './latency.ts'
import type { Metrics } from './metrics.ts'

/** What `hubctl status` and `hubctl trend` add up over the processes of a hub. Counts since the start. */
export interface Figures {
  /** What `hubctl` calls the node of the process. */
  node: string
  /** Another one where the counts have begun anew. */
  run: string
  /** Seconds. */
  uptime: number
  connections: number
  /** Bytes. */
  rss: number
  /** Events that were decided, by outcome. */
  events: Record<string, number>
  /** Messages that were written to subscribers. */
  deliveries: number
  /** Events that took longer than the budget. */
  exceeded: number
  /** Events that were measured. */
  measured: number
  /** How long the newest of them took, the last one at the end, milliseconds. */
  samples: number[]
}

/** Returns a function that reads the figures of this process. `node`: its name. */
export function createFigures(node: string, metrics: Metrics) {
  return async (): Promise<Figures> => {
    const [events, ...single] = await Promise.all([
      metrics.events.get(),
      metrics.connections.get(),
      metrics.deliveries.get(),
      metrics.budgetExceeded.get(),
    ])
    const [connections = 0, deliveries = 0, exceeded = 0] = single.map(({ values }) => values[0]?.value ?? 0)
    return {
      node,
      run: metrics.run,
      uptime: metrics.uptime(),
      connections,
      rss: process.memoryUsage.rss(),
      events: Object.fromEntries(events.values.map(({ labels, value }) => [String(labels.outcome), value])),
      deliveries,
      exceeded,
      measured: metrics.latency.summary(0).count,
      samples: metrics.latency.samples(),
    }
  }
}

/** The figures of several processes, as of one. */
export function sumOf(each: readonly Figures[]) {
  return {
    connections: sum(each, ({ connections }) => connections),
    budget: {
      count: sum(each, ({ measured }) => measured),
      ...percentiles(each.flatMap(({ samples }) => samples)),
    },
    memory: { rss: sum(each, ({ rss }) => rss) },
  }
}

export function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0)
}

/** Percentiles of milliseconds. */
export function percentiles(samples: readonly number[]): { p50: number; p99: number } {
  const sorted = Float64Array.from(samples).sort()
  return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) }
}
