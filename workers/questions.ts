import type { Config } from '../config/settings.ts'
import type { Count } from '../listener/shared-counts.ts'
import type { Collected, CollectedMetrics } from '../telemetry/collected.ts'
import type { Figures } from '../telemetry/figures.ts'

/** What workers ask the primary. */
export type ToPrimary = {
  /** The settings of this worker, and what the other workers count at the moment. */
  begin(): { config: Config; counts: Count[] }
  /** The worker accepts clients. */
  ready(): void
  /** The counts of this worker have changed by so much. */
  count(changes: Count[]): void
  /** Appends a line to the audit log. Resolves when the line survives power loss. */
  appendAudit(line: string): Promise<void>
  /** The metrics of all workers, as one. */
  metrics(): Promise<CollectedMetrics>
  /** The figures of each worker that answers. */
  figures(): Promise<Figures[]>
}

/** What the primary asks workers. */
export type ToWorker = {
  /** The counts of another worker have changed by so much. */
  count(changes: Count[]): void
  metrics(): Promise<Collected>
  figures(): Figures
}
