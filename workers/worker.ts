import cluster from 'node:cluster'
import type { SharedCounts } from '../listener/shared-counts.ts'
import type { Collected, CollectedMetrics } from '../telemetry/collected.ts'
import type { Figures } from '../telemetry/figures.ts'
import type { Trend } from '../telemetry/trend.ts'
import { createLink } from './link.ts'
import type { ToPrimary, ToWorker } from './questions.ts'

/** Time between two messages about counts, milliseconds. */
const countMs = 10

/** Time between two signs of life, milliseconds. */
export const aliveMs = 1_000

/** What a worker has of the other workers, through the primary. */
export interface OtherWorkers {
  /** All workers together: what operators call them, their data directory, and how long they have run, seconds. */
  hub: { node: string; dataDir: string; uptime(): number }
  counts: SharedCounts
  appendAudit(line: string): Promise<void>
  metrics(): Promise<CollectedMetrics>
  figures(): Promise<Figures[]>
  trend(): Promise<ReturnType<Trend['samples']>>
  /** Sets what this worker answers. */
  answer(answers: { metrics(): Promise<Collected>; figures(): Promise<Figures> }): void
}

export type Worker = Awaited<ReturnType<typeof connectToPrimary>>

/** Whether this process is a worker of a hub. */
export function isWorker(): boolean {
  return cluster.isWorker && process.env[workerMark] !== undefined
}

/** Variable that the primary sets for its workers. Other programs, too, may run a hub in a cluster. */
export const workerMark = 'NOW_PLAYING_HUB_WORKER'

/** Connects a worker to its primary. */
export async function connectToPrimary() {
  let answers: Parameters<OtherWorkers['answer']>[0] | undefined
  const others = new Map<string, number>()
  const own = {
    count(changes) {
      for (const [key, by] of changes) change(others, key, by)
    },
    answer() {},
    metrics: () => given().metrics(),
    figures: () => given().figures(),
  } satisfies ToWorker
  const primary = createLink<ToPrimary>((text) => process.send?.(text), own)
  process.on('message', primary.receive)
  const { config, counts, node, dataDir, uptime } = await primary.ask('begin')
  const begun = performance.now()
  own.count(counts)
  setInterval(() => primary.tell('alive'), aliveMs).unref()

  const untold = new Map<string, number>()
  const siblings: OtherWorkers = {
    hub: { node, dataDir, uptime: () => uptime + (performance.now() - begun) / 1000 },
    counts: {
      add(key, by) {
        if (untold.size === 0) setTimeout(tell, countMs)
        change(untold, key, by)
      },
      ofOthers: (key) => others.get(key) ?? 0,
    },
    appendAudit: async (line) => void (await primary.ask('appendAudit', line)),
    metrics: () => primary.ask('metrics'),
    figures: () => primary.ask('figures'),
    trend: () => primary.ask('trend'),
    answer: (given) => {
      answers = given
    },
  }
  return { config, siblings, ready: () => primary.ask('ready') }

  function tell(): void {
    const changes = [...untold]
    untold.clear()
    if (changes.length > 0) primary.tell('count', changes)
  }

  function given() {
    if (!answers) throw new Error('the worker has not started yet')
    return answers
  }
}

function change(counts: Map<string, number>, key: string, by: number): void {
  const count = (counts.get(key) ?? 0) + by
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}
