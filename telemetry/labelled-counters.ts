import { Counter, type Registry } from 'prom-client'

type LabelledCounters = ReturnType<typeof createLabelledCounters>

/** What became of an event, as a label. */
export type EventOutcome = Parameters<LabelledCounters['events']['inc']>[0]['outcome']

/** Why the hub refused a connection, as a label. */
export type RefusedReason = Parameters<LabelledCounters['connectionsRefused']['inc']>[0]['reason']

/** Why the process of a driver ended, as a label. */
export type DriverEnd = Parameters<LabelledCounters['pluginDriverEnds']['inc']>[0]['reason']

type CounterOf<Label extends string, Value extends string> = Omit<Counter<Label>, 'inc'> & {
  inc(labels: Record<Label, Value>, by?: number): void
}

/**
 * Counters with one label and a fixed list of values. Each value begins with 0. If a burst began a series, Prometheus
 * would see no growth, and no alert would fire.
 */
export function createLabelledCounters(registry: Registry) {
  return {
    events: counter('hub_events_total', 'Events by outcome', 'outcome', [
      'published',
      'invalid',
      'blocked',
      'failed',
      'topic-created',
      'dry-run',
    ]),
    publishesDenied: counter('hub_publishes_denied_total', 'Publishes and wills dropped by the ACL', 'code', [
      'topic.denied',
      'topic.invalid',
    ]),
    connectionsRefused: counter('hub_connections_refused_total', 'Connections refused', 'reason', [
      'credentials',
      'client-id',
      'temporary',
      'too-many-failures',
      'too-many-sessions',
      'too-many-wills',
      'tls',
      'max-connections',
      'max-connections-per-address',
      'proxy-header',
    ]),
    connectionsCut: counter('hub_connections_cut_total', 'Connections closed by the hub', 'reason', [
      'protocol',
      'version',
      'slow',
      'keepalive',
      'revoked',
      'takeover',
      'operator',
      'overload',
      'error',
    ]),
    messagesDropped: counter('hub_messages_dropped_total', 'Messages a subscriber did not get', 'reason', [
      'slow',
      'queue-limit',
      'superseded',
    ]),
    logins: counter('hub_logins_total', 'Log-ins of users over HTTPS', 'outcome', [
      'ok',
      'wrong',
      'throttled',
      'busy',
    ]),
    workAttempts: counter('hub_work_attempts_total', 'Deliveries to webhooks and plugin targets', 'result', [
      'acknowledged',
      'refused',
      'failed',
      'gone',
    ]),
    pluginDriverEnds: counter('hub_plugin_driver_ends_total', 'Ends of drivers of plugin targets', 'reason', [
      'load',
      'error',
      'exit',
      'hung',
      'memory',
      'late',
    ]),
  }

  function counter<Label extends string, const Value extends string>(
    name: string,
    help: string,
    label: Label,
    values: readonly Value[],
  ): CounterOf<Label, Value> {
    const made = new Counter({ name, help, labelNames: [label], registers: [registry] })
    for (const value of values) made.labels(value).inc(0)
    return made
  }
}
