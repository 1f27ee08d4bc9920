import type { ErrorItem } from '../event/error.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { FeedInUse } from './feed/feed.ts'

/**
 * Counts the warnings about a published event. Institutions that the feed does not list count together: otherwise the
 * metric had a series for each of them.
 */
export function countWarnings(
  warnings: readonly ErrorItem[],
  institutionId: string,
  { feed, metrics }: { feed: FeedInUse; metrics: Pick<Metrics, 'eventWarnings'> },
): void {
  if (warnings.length === 0) return
  const institution = feed.inUse?.feed.hasInstitution(institutionId) ? institutionId : 'other'
  for (const { errorCode: code } of warnings) metrics.eventWarnings.inc({ institution, code })
}
