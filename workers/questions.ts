import type { Config } from '../config/settings.ts'
import type { Count } from '../listener/shared-counts.ts'
import type { Collected, CollectedMetrics } from '../telemetry/collected.ts'
import type { Figures } from '../telemetry/figures.ts'
import type { Trend } from '../telemetry/trend.ts'

/** What workers ask the primary. */
export type ToPrimary = {
  /**
   * The settings of this worker, what the other workers count at the moment, and of the hub: what operators call it, its
   * data directory, and how long it has run, seconds.
   */
  begin(): { config: Config; counts: Count[]; node: string; dataDir: string; uptime: number }
  /** The worker accepts clients. */
  ready(): void
  /** The worker lives, and its event loop turns. */
  alive(): void
  /** The counts of this worker have changed by so much. */
  count(changes: Count[]): void
  /** Appends a line to the audit log. Resolves when the line survives power loss. */
  appendAudit(line: string): Promise<void>
  /** The metrics of all workers, as one. */
  metrics(): Promise<CollectedMetrics>
  /** The figures of each worker that answers. */
  figures(): Promise<Figures[]>
  /** How the last hour of all workers was. */
  trend(): ReturnType<Trend['samples']>
}

/** What the primary asks workers. */
export type ToWorker = {
  /** The counts of another worker have changed by so much. */
  count(changes: Count[]): void
  /** Answers: the event loop turns. */
  answer(): void
  metrics(): Promise<Collected>
  figures(): Promise<Figures>
}
