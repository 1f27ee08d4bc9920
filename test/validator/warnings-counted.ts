import type { createMetrics } from '../../telemetry/metrics.ts'

/** The counts of `hub_event_warnings_total`: institution, code, number. */
export async function warningsCounted({
  eventWarnings,
}: Pick<ReturnType<typeof createMetrics>, 'eventWarnings'>) {
  const { values } = await eventWarnings.get()
  return values.map(({ labels, value }) => [labels.institution, labels.code, value])
}
