import { percentile } from './latency.ts'

/** What `hubctl status` adds up over the processes of a hub. */
export interface Figures {
  connections: number
  /** Bytes. */
  rss: number
  /** Events that were measured since the start. */
  measured: number
  /** How long the newest of them took, milliseconds. */
  samples: number[]
}

/** The figures of several processes, as of one. */
export function sumOf(each: readonly Figures[]) {
  const sum = (of: (figures: Figures) => number) => each.reduce((total, figures) => total + of(figures), 0)
  const samples = Float64Array.from(each.flatMap(({ samples }) => samples)).sort()
  return {
    connections: sum(({ connections }) => connections),
    budget: {
      count: sum(({ measured }) => measured),
      p50: percentile(samples, 0.5),
      p99: percentile(samples, 0.99),
    },
    memory: { rss: sum(({ rss }) => rss) },
  }
}
