import { randomUUID } from 'node:crypto'
import { type Counter, type Gauge, Registry } from 'prom-client'
import { type Collected, type CollectedMetrics, together } from './collected.ts'
import { createExposition } from './exposition.ts'
import { createLatency } from './latency.ts'
import { type Metric, makeMetric, makeReading, type Observed } from './make-metric.ts'
import { processMetrics } from './process-metrics.ts'

export type Metrics = ReturnType<typeof createMetrics>

/**
 * The metrics of one node. Several nodes in one process have separate registries. `ofAll`: the metrics of all workers,
 * which are shown instead.
 */
export function createMetrics(
  settings: { livestreamMetrics?: boolean } = {},
  ofAll?: () => Promise<CollectedMetrics>,
) {
  const inStatus = new Registry()
  const others = new Registry()
  // Not at the first question of Prometheus: what the process did before would be missing in its counters.
  const ofProcess = processMetrics()
  const startedAt = performance.now()
  const run = randomUUID()
  const startTime = Date.now() / 1000
  const readings: Readings = { startTime: (set) => set(startTime) }
  const made = Object.fromEntries(
    Object.entries<Metric>(metricTable).flatMap<[string, unknown]>(([name, metric]) => {
      if (metric.onlyWith !== undefined && !settings[metric.onlyWith]) return []
      const registry = metric.isInStatus ? inStatus : others
      if (!metric.isRead) return [[name, makeMetric(metric, registry)]]
      makeReading(metric, registry, () => readings[name as ReadName])
      return []
    }),
  ) as Made

  const namesInStatus = new Set(inStatus.getMetricsAsArray().map(({ name }) => name))

  return {
    ...made,
    /** Another one for each start of the node: its counters begin anew. */
    run,
    /** How long recent events took, and how many clients got them. */
    latency: createLatency(made),

    /** Sets where the metrics come from that the node reads when Prometheus asks. */
    read: (from: Readings): void => void Object.assign(readings, from),

    /** Seconds since the node started. The process may be older. */
    uptime: (): number => (performance.now() - startedAt) / 1000,

    /** All metrics, including those of the process, in the text format of Prometheus. */
    exposition: createExposition(async () =>
      ofAll ? [together([await ofAll()])] : [inStatus, others, ofProcess],
    ),
    contentType: others.contentType,

    /** The metrics of this process, for the primary of the workers. */
    async collect(): Promise<Collected> {
      const each = [inStatus, others, ofProcess].map((registry) => registry.getMetricsAsJSON())
      return { run, metrics: (await Promise.all(each)).flat() }
    },

    /** The metrics of `hubctl status` as plain numbers: `{ "hub_events_total{outcome=published}": 3 }`. */
    async snapshot(): Promise<Record<string, number>> {
      const values: Record<string, number> = {}
      const shown = ofAll ? (await ofAll()).filter(({ name }) => namesInStatus.has(name)) : undefined
      for (const metric of shown ?? (await inStatus.getMetricsAsJSON())) {
        for (const { labels, value } of metric.values) {
          const suffix = Object.entries(labels).map(([name, label]) => `${name}=${label}`)
          values[suffix.length > 0 ? `${metric.name}{${suffix.join()}}` : metric.name] = value
        }
      }
      return values
    },
  }
}

/** Whole days until a date. Negative if the date has passed. */
export function daysUntil(date: Date): number {
  return Math.floor((date.getTime() - Date.now()) / (24 * 3600 * 1000))
}

/** All metrics of a node, in the order of `/metrics`. */
export const metricTable = {
  certificateExpiryDays: {
    type: 'gauge',
    name: 'hub_certificate_expiry_days',
    help: 'Whole days until the certificate in use expires',
    isRead: true,
    together: 'min',
    isInStatus: true,
    does: "whole days until the server's certificate expires",
    act: 'replace the [certificate](operators.md#certificates); no restart is needed',
  },
  budgetExceeded: {
    type: 'counter',
    name: 'hub_budget_exceeded_total',
    help: 'Events that took longer than 220 ms',
    isInStatus: true,
    does: 'events that took longer than 220 ms; each also has a line in the log',
    act: '[`hubctl events slow`](operators.md#questions-about-events) shows the stage that takes the time',
  },
  events: {
    type: 'counter',
    name: 'hub_events_total',
    help: 'Events by outcome',
    labels: { outcome: ['published', 'invalid', 'blocked', 'failed', 'topic-created', 'dry-run'] },
    isInStatus: true,
    does: 'events by `published` (at least one livestream), `invalid`, `blocked`, `failed` (not stored); over HTTPS also `topic-created`: only made topics, and has to be sent again; `dry-run`: only tried out, with any outcome',
  },
  publishesDenied: {
    type: 'counter',
    name: 'hub_publishes_denied_total',
    help: 'Publishes and wills dropped by the ACL',
    labels: { code: ['topic.denied', 'topic.invalid'] },
    isInStatus: true,
    does: 'publishes and wills to topics that are not allowed',
  },
  streams: {
    type: 'gauge',
    name: 'hub_streams',
    help: 'Open streams over HTTPS',
    isInStatus: true,
    does: 'open [streams](reading.md#as-a-stream) of readers over HTTPS',
  },
  streamsEnded: {
    type: 'counter',
    name: 'hub_streams_ended_total',
    help: 'Streams over HTTPS that ended',
    labels: { reason: ['closed', 'slow', 'revoked', 'expired', 'stopping', 'cut-off', 'failed'] },
    isInStatus: true,
    does: 'streams that ended: `closed` by the reader, `slow` because it read too slowly, `failed` because the store did not answer',
  },
  connectionsRefused: {
    type: 'counter',
    name: 'hub_connections_refused_total',
    help: 'Connections refused',
    labels: {
      reason: [
        'banned',
        'credentials',
        'certificate',
        'reader',
        'client-id',
        'temporary',
        'too-many-failures',
        'too-many-sessions',
        'too-many-wills',
        'tls',
        'max-connections',
        'max-connections-per-address',
        'proxy-header',
      ],
    },
    isInStatus: true,
    does: 'connections that the hub did not let in',
    act: '`max-connections`: raise `HUB_MAX_CONNECTIONS`, or add a node. Other reasons: the [log](operators.md#log) has the address or credential',
  },
  connectionsCut: {
    type: 'counter',
    name: 'hub_connections_cut_total',
    help: 'Connections closed by the hub',
    labels: {
      reason: [
        'protocol',
        'version',
        'slow',
        'keepalive',
        'revoked',
        'banned',
        'takeover',
        'operator',
        'cut-off',
        'overload',
        'error',
      ],
    },
    isInStatus: true,
    does: 'connections that the hub closed; `overload`: there was no room for more, and its packet was unfinished, or waited for a turn or the publish rate, for longest',
  },
  messagesDropped: {
    type: 'counter',
    name: 'hub_messages_dropped_total',
    help: 'Messages a subscriber did not get',
    labels: { reason: ['slow', 'queue-limit', 'superseded'] },
    isInStatus: true,
    does: 'not delivered: `slow` (QoS 0 to a full connection); `queue-limit` (more than a session gets that was away); `superseded` (no longer kept, or too far behind)',
    act: '`slow`: `pendingBytes` of `hubctl clients list --json` shows [who reads too slowly](operators.md#sessions-and-clients)',
  },
  logins: {
    type: 'counter',
    name: 'hub_logins_total',
    help: 'Log-ins over HTTPS',
    labels: { outcome: ['ok', 'wrong', 'throttled', 'busy'] },
    isInStatus: true,
    does: 'log-ins of users over HTTPS, uses of password links that failed, and refused requests of [readers](https.md#readers)',
    act: 'many `wrong` or `throttled`: [failed log-ins](operators.md#failed-log-ins)',
  },
  workAttempts: {
    type: 'counter',
    name: 'hub_work_attempts_total',
    help: 'Deliveries to webhooks and plugin targets',
    labels: { result: ['acknowledged', 'refused', 'failed', 'gone'] },
    isInStatus: true,
    does: 'deliveries to webhooks and plugin targets that were `acknowledged`, `refused` (4xx except 408, 410 and 429), `failed`, `gone` (410)',
  },
  outputAttempts: {
    type: 'counter',
    name: 'hub_output_attempts_total',
    help: 'Titles sent to outputs',
    labels: { result: ['acknowledged', 'refused', 'failed'] },
    isInStatus: true,
    does: 'titles sent to [outputs](outputs.md) that were `acknowledged`, `refused`, or `failed`: no answer',
  },
  pluginDriverEnds: {
    type: 'counter',
    name: 'hub_plugin_driver_ends_total',
    help: 'Ends of drivers of plugin targets',
    labels: { reason: ['load', 'error', 'exit', 'hung', 'memory', 'late'] },
    isInStatus: true,
    does: 'ends of [drivers of your own](plugins.md#what-a-driver-cannot-do): `load` (not ready within 30 s, or not loadable), `error` (no code caught it), `hung` (a blocked event loop), `memory` (too much of it), `late` (an attempt that went on after its signal), `exit` (any other end)',
    act: '`hubctl queues list` shows which driver, how often, and why it ended; mend it',
  },
  eventErrors: {
    type: 'counter',
    name: 'hub_event_errors_total',
    help: 'Reasons given in feedback',
    labels: { code: [] },
    isInStatus: true,
    does: 'errors of events that were refused, or in part, by [error code](reference/errors.md#errors); without `service.failed` and dry runs',
  },
  subscriptionsDenied: {
    type: 'counter',
    name: 'hub_subscriptions_denied_total',
    help: 'Topic filters answered with 0x80',
    isInStatus: true,
    does: 'filters answered with 0x80',
  },
  connections: {
    type: 'gauge',
    name: 'hub_connections',
    help: 'Open MQTT connections',
    isInStatus: true,
    does: 'open MQTT connections, those over WebSocket included',
  },
  deliveries: {
    type: 'counter',
    name: 'hub_deliveries_total',
    help: 'Messages written to subscribers',
    isInStatus: true,
    does: 'messages for connected clients, retained ones and feedback included, and those that were then dropped as `slow`',
  },
  httpsRequests: {
    type: 'counter',
    name: 'hub_https_requests_total',
    help: 'HTTPS requests answered',
    labels: { route: [], status: [] },
    isInStatus: true,
    does: 'HTTPS requests answered; `none` for an unknown route, and for broken requests: malformed (400), too slow (408), header too large (431), refused WebSocket upgrades',
  },
  deliveriesStale: {
    type: 'counter',
    name: 'hub_deliveries_stale_total',
    help: 'Deliveries that were passed over as not worth it any more',
    isInStatus: true,
    does: 'items that were passed over because they were older than the [`maxAge`](webhooks.md#what-is-worth-delivering) of their webhook or plugin target, and elements that were over before an [output](outputs.md) had shown them',
  },
  workDropped: {
    type: 'counter',
    name: 'hub_work_dropped_total',
    help: 'Work lost to the limit of a queue',
    isInStatus: true,
    does: 'items lost to `HUB_WORK_QUEUE_LIMIT`',
    act: 'the endpoint has been away for too long; `hubctl queues replay NAME --since T` brings events back',
  },
  queuesStuck: {
    type: 'counter',
    name: 'hub_queues_stuck_total',
    help: 'Queues that stood still for 30 s and were picked up',
    isInStatus: true,
    does: 'queues with something to deliver that stood still for 30 s, and were picked up: never, unless the hub has a fault',
    act: 'report it with the lines of the log around `queue stood still`',
  },
  storeFailures: {
    type: 'counter',
    name: 'hub_store_failures_total',
    help: 'Commits the store refused',
    isInStatus: true,
    does: 'commits that the store refused',
    act: 'publishers send them again; find the reason in the [log](operators.md#log) before the store fails for good',
  },
  budgetSeconds: {
    type: 'histogram',
    name: 'hub_budget_seconds',
    help: 'Time from PUBLISH received to written to the last connected subscriber',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.22, 0.5, 1, 2.5],
    does: 'time from the PUBLISH of an event until it was written to the last connected subscriber; in `hubctl status` as `budget`',
  },
  eventStageSeconds: {
    type: 'histogram',
    name: 'hub_event_stage_seconds',
    help: 'What each stage of an accepted event took: until it was decided, from then stored, from then written to the last connected subscriber',
    labels: { stage: ['decided', 'stored', 'written'] },
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.22, 0.5, 1, 2.5],
    does: 'time in each stage of an accepted event: from its arrival until it was `decided`, from then until it was `stored`, from then until it was `written` to the last connected subscriber',
  },
  eventWarnings: {
    type: 'counter',
    name: 'hub_event_warnings_total',
    help: 'Warnings about published events',
    labels: { institution: [], code: [] },
    does: '[warnings](reference/errors.md#warnings) about published events, without dry runs. `institution` is one of the livestream feed, or `other`',
  },
  loopingLivestreams: {
    type: 'gauge',
    name: 'hub_looping_livestreams',
    help: 'Livestreams that publish each other in a loop',
    isRead: true,
    together: 'max',
    does: 'livestreams that were [in a loop](operators.md#loops) within the last hour. All nodes of one store show the same',
    act: 'tell the institutions which livestreams they are: the log and `hubctl events newest` name them',
  },
  silentLivestreams: {
    type: 'gauge',
    name: 'hub_silent_livestreams',
    help: 'Livestreams without an event for twice as long as usual',
    isRead: true,
    together: 'max',
    does: 'livestreams that have been [silent](operators.md#silence) for twice as long as usual at this hour. All nodes of one store show the same',
    act: 'tell the institutions: the log names the livestreams, and so does `hubctl events newest`',
  },
  workSeconds: {
    type: 'histogram',
    name: 'hub_work_attempt_seconds',
    help: 'Time until a webhook or plugin target had answered',
    buckets: [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
    does: 'time until webhooks and plugin targets had answered',
  },
  startTime: {
    type: 'gauge',
    name: 'hub_start_time_seconds',
    help: 'When the node started, also again in the same process; seconds since the epoch',
    isRead: true,
    together: 'max',
    does: 'when the node started, in seconds since 1970. It changes also when the node starts again in the same process (after `hubctl import`, or when it lost track of the others), where `process_start_time_seconds` stays',
    act: 'the last line of the [log](operators.md#log) before each start names the reason',
  },
  buildInfo: {
    type: 'gauge',
    name: 'hub_build_info',
    help: 'Always 1: the labels say which release this is',
    labels: { version: [], node_version: [] },
    isRead: true,
    together: 'first',
    does: 'always 1: the release, and that of Node.js',
  },
  feedOk: {
    type: 'gauge',
    name: 'hub_feed_ok',
    help: 'Whether the last refresh of the livestream feed was good',
    isRead: true,
    together: 'min',
    does: '1 if the last refresh of the livestream feed was good, otherwise 0',
    act: '`hubctl feed status` names the problem',
  },
  feedAge: {
    type: 'gauge',
    name: 'hub_feed_age_seconds',
    help: 'Since the livestream feed was last read and found good',
    isRead: true,
    together: 'max',
    does: 'seconds since the feed was last read and found good; absent as long as there is none',
    act: 'check the source, then `hubctl feed refresh`',
  },
  feedRefused: {
    type: 'gauge',
    name: 'hub_feed_refused',
    help: 'Why the last refresh of the livestream feed was refused: 1 for that reason',
    labels: { reason: [] },
    isRead: true,
    together: 'max',
    does: '1 for the [reason](reference/errors.md#the-livestream-feed) for which the last refresh was refused, 0 for all others',
    act: '`hubctl feed diff` shows what would change; if it is right, `hubctl feed refresh --force`',
  },
  storeOk: {
    type: 'gauge',
    name: 'hub_store_ok',
    help: 'Whether the store accepts commits',
    isRead: true,
    together: 'min',
    does: '1 if the store accepts commits and has not replaced a damaged one (until `hubctl store accept`), otherwise 0',
    act: '`hubctl status` names the problem: free the disk, bring Redis back, or [go on](operators.md#a-damaged-store)',
  },
  storeUnsafe: {
    type: 'gauge',
    name: 'hub_store_unsafe_settings',
    help: 'Settings with which Redis may lose what was acknowledged',
    isRead: true,
    together: 'max',
    does: 'settings of Redis with which it may lose what was acknowledged; the node looks once a minute',
    act: 'the log names them (`Redis may lose what was acknowledged`): [how Redis must be set](deployment.md#several-nodes)',
  },
  workPending: {
    type: 'gauge',
    name: 'hub_work_pending',
    help: 'Items that wait for webhooks and plugin targets',
    isRead: true,
    together: 'max',
    does: 'items that wait for webhooks and plugin targets',
  },
  workOldest: {
    type: 'gauge',
    name: 'hub_work_oldest_seconds',
    help: 'How long the oldest of them has waited, without queues that rest; 0 when nothing waits',
    isRead: true,
    together: 'max',
    does: 'how long the oldest item for them has waited, without those whose queue is `paused`, `disabled`, `closed` or has `no target`',
    act: '`hubctl queues list` shows which, why, and the contact',
  },
  queuesBehind: {
    type: 'gauge',
    name: 'hub_queues_behind',
    help: 'Queues from which the hub sends, and whose oldest item has waited for over a minute',
    isRead: true,
    together: 'max',
    does: 'queues of webhooks and plugin targets whose oldest item has waited for over a minute: `behind`, `retrying` or `beginning`',
    act: '`hubctl queues list` shows which, why, and the contact',
  },
  outputsFailing: {
    type: 'gauge',
    name: 'hub_outputs_failing',
    help: 'Livestreams of outputs that do not get their titles from this node',
    isRead: true,
    does: 'livestreams of [outputs](outputs.md) whose last attempt of this node failed. Nodes add up',
    act: '`hubctl outputs list --state retrying` shows which and why, `hubctl outputs test` the answer',
  },
  deadLetters: {
    type: 'gauge',
    name: 'hub_work_dead_letters',
    help: 'Dead letters of webhooks and plugin targets',
    isRead: true,
    together: 'max',
    does: 'dead letters of webhooks and plugin targets',
    act: '`hubctl queues dead-letters NAME`, then `hubctl queues replay NAME`',
  },
  subscriptionsDisabled: {
    type: 'gauge',
    name: 'hub_subscriptions_disabled',
    help: 'Push subscriptions that the hub has disabled',
    isRead: true,
    together: 'max',
    does: 'push subscriptions that the hub has disabled',
    act: '`hubctl subscriptions list --state disabled` names the contacts',
  },
  sessions: {
    type: 'gauge',
    name: 'hub_sessions',
    help: 'Persistent sessions, those whose client is connected and those that are away',
    labels: { state: ['connected', 'away'] },
    isRead: true,
    together: 'max',
    does: 'persistent sessions, of connected clients and of others. All nodes of one store show the same, as in `hub_work_pending`, `hub_queues_behind`, `hub_work_dead_letters` and `hub_subscriptions_disabled`',
  },
  subscribersOfAll: {
    type: 'gauge',
    name: 'hub_subscribers_of_all',
    help: 'Clients connected to this node that subscribe to all livestreams',
    isRead: true,
    does: 'clients of this node that subscribe to all livestreams, such as to `radio/#`',
  },
  livestreamSubscribers: {
    type: 'gauge',
    name: 'hub_livestream_subscribers',
    help: 'The other clients, by livestream of the feed',
    labels: { livestream: [] },
    isRead: true,
    onlyWith: 'livestreamMetrics',
    does: 'the clients of this node that do not subscribe to all livestreams, by livestream of the feed; only with `HUB_LIVESTREAM_METRICS`',
  },
} as const satisfies Record<string, Metric>

type Table = typeof metricTable
type MetricName = keyof Table
type NamesWith<Part> = { [Name in MetricName]: Table[Name] extends Part ? Name : never }[MetricName]
type ReadName = NamesWith<{ isRead: true }>

type ValuesOf<Labels> = {
  -readonly [Label in keyof Labels]: Labels[Label] extends readonly []
    ? string | number
    : Labels[Label] extends readonly (infer Value)[]
      ? Value
      : never
}

/** What became of an event, as a label. */
export type EventOutcome = ValuesOf<Table['events']['labels']>['outcome']

/** Why the hub refused a connection, as a label. */
export type RefusedReason = ValuesOf<Table['connectionsRefused']['labels']>['reason']

/** Why the hub closed a connection, as a label. */
export type CutReason = ValuesOf<Table['connectionsCut']['labels']>['reason']

/** Why the process of a driver ended, as a label. */
export type DriverEnd = ValuesOf<Table['pluginDriverEnds']['labels']>['reason']

/** Sets a value of a metric that is read. */
type SetValue<Of> = Of extends { labels: infer Labels }
  ? (value: number, labels: ValuesOf<Labels>) => void
  : (value: number) => void

/** How the metrics are read. A metric whose reading throws, or that has none, has no value. */
export type Readings = { [Name in ReadName]?: (set: SetValue<Table[Name]>) => void | Promise<void> }

type CounterOf<Of> = Of extends { labels: infer Labels }
  ? Omit<Counter, 'inc'> & { inc(labels: ValuesOf<Labels>, by?: number): void }
  : Counter

type HistogramOf<Of> = Of extends { labels: Record<string, readonly (infer Value extends string)[]> }
  ? Record<Value, Observed>
  : Observed

type Made = {
  [Name in Exclude<MetricName, ReadName>]: Table[Name]['type'] extends 'counter'
    ? CounterOf<Table[Name]>
    : Table[Name]['type'] extends 'gauge'
      ? Gauge
      : HistogramOf<Table[Name]>
}
