/**
 * An alert of `deploy/prometheus/alerts.yml`, with series for which it fires or stays quiet. Series are in promtool's
 * notation, one value a minute; `_`: the node does not run.
 */
export interface AlertCase {
  alert: string
  fires: Record<string, string>
  quiet: Record<string, string>
}

const hub = 'instance="a",job="hub"'
/** Each minute, 20 of 1,000 events take 220 to 500 ms, which breaks the budget for p99. */
const slow = { 'hub_budget_seconds_bucket{le="0.22",instance="a"}': '0+980x60' }
const quick = { 'hub_budget_seconds_bucket{le="0.22",instance="a"}': '0+1000x60' }
const all = {
  'hub_budget_seconds_bucket{le="0.5",instance="a"}': '0+1000x60',
  'hub_budget_seconds_bucket{le="+Inf",instance="a"}': '0+1000x60',
}

/** One quick event each minute, and `count` slow ones within one minute. */
const slowAmongFew = (count: number) => ({
  'hub_budget_seconds_bucket{le="0.22",instance="a"}': '0+1x60',
  'hub_budget_seconds_bucket{le="0.5",instance="a"}': `0+1x52 ${53 + count}+1x7`,
  'hub_budget_seconds_bucket{le="+Inf",instance="a"}': `0+1x52 ${53 + count}+1x7`,
})

/** Cases in the order of the alerts. promtool evaluates each case after 60 minutes. */
export const alertCases: readonly AlertCase[] = [
  gauge('HubDown', `up{${hub}}`, '1x50 0x10', '1x60'),
  gauge('HubRestarts', `hub_start_time_seconds{${hub}}`, '1x50 2x2 3x2 4x6', '1x55 2x5'),
  gauge('HubStoreFails', 'hub_store_ok', '1x50 0x10', '1x60'),
  gauge('HubEventsNotStored', 'hub_store_failures_total', '0x55 3x5', '3x60'),
  {
    alert: 'HubFeedMissing',
    fires: { [`hub_feed_ok{${hub}}`]: '0x60' },
    quiet: { [`hub_feed_ok{${hub}}`]: '0x60', [`hub_feed_age_seconds{${hub}}`]: '3600+60x60' },
  },
  gauge('HubFeedFails', 'hub_feed_ok', '1x40 0x20', '1x55 0x5'),
  gauge('HubFeedHeld', 'hub_feed_refused{reason="institution"}', '0x55 1x5', '0x60'),
  gauge('HubFeedOld', 'hub_feed_age_seconds', '25000x60', '3600x50 _x5 25000x2'),
  {
    alert: 'HubBudgetBroken',
    fires: { ...slow, ...all, [`hub_budget_exceeded_total{${hub}}`]: '0+20x60' },
    quiet: { ...quick, ...all, [`hub_budget_exceeded_total{${hub}}`]: '0x60' },
  },
  {
    alert: 'HubBudgetBroken',
    fires: { ...slowAmongFew(4), [`hub_budget_exceeded_total{${hub}}`]: '0x52 4x8' },
    quiet: { ...slowAmongFew(3), [`hub_budget_exceeded_total{${hub}}`]: '0x52 3x8' },
  },
  gauge('HubSubscribersTooSlow', 'hub_messages_dropped_total{reason="slow"}', '_x50 0x5 150x5', '0+1x60'),
  gauge('HubLogInsRefused', 'hub_connections_refused_total{reason="credentials"}', '0+120x60', '0+6x60'),
  gauge('HubLogInsRefused', 'hub_logins_total{outcome="wrong"}', '0+120x60', '0+6x60'),
  gauge('HubLogInsRefused', 'hub_logins_total{outcome="throttled"}', '_x40 0+120x20', '0+6x60'),
  {
    alert: 'HubLogInsRefused',
    fires: {
      [`hub_logins_total{outcome="wrong",${hub}}`]: '0+40x60',
      [`hub_connections_refused_total{reason="credentials",${hub}}`]: '0+40x60',
    },
    quiet: { [`hub_logins_total{outcome="ok",${hub}}`]: '0+600x60' },
  },
  gauge(
    'HubConnectionsRefused',
    'hub_connections_refused_total{reason="max-connections"}',
    '_x50 0x5 5x5',
    '5x60',
  ),
  gauge(
    'HubConnectionsRefused',
    'hub_connections_refused_total{reason="too-many-wills"}',
    '_x50 0x5 5x5',
    '5x60',
  ),
  gauge('HubDriverEnds', 'hub_plugin_driver_ends_total', '0+1x60', '1x60'),
  gauge('HubQueuesBehind', 'hub_queues_behind', '1x60', '0x60'),
  gauge('HubOutputsFail', 'hub_outputs_failing', '1x60', '0x60'),
  gauge('HubLivestreamsSilent', 'hub_silent_livestreams', '0x50 1x10', '0x50 2x5 0x5'),
  gauge('HubLivestreamsLoop', 'hub_looping_livestreams', '0x50 2x10', '0x50 2x5 0x5'),
  gauge('HubWorkLate', 'hub_work_oldest_seconds', '5000x60', '30x60'),
  gauge('HubDeadLetters', 'hub_work_dead_letters', '1x55 2x5', '9x50 2x10'),
  {
    // Another node, as after an update in which a node has a new name, is the first to tell of the letter.
    alert: 'HubDeadLetters',
    fires: {
      'hub_work_dead_letters{instance="a"}': '1x50 _x10',
      'hub_work_dead_letters{instance="b"}': '_x52 2x8',
    },
    quiet: {
      'hub_work_dead_letters{instance="a"}': '2x50 _x10',
      'hub_work_dead_letters{instance="b"}': '_x52 2x8',
    },
  },
  gauge('HubWorkDropped', 'hub_work_dropped_total', '0x55 1x5', '1x60'),
  gauge('HubQueuesStuck', 'hub_queues_stuck_total', '0x55 1x5', '1x60'),
  gauge('HubSubscriptionsDisabled', 'hub_subscriptions_disabled', '1x60', '0x60'),
  gauge('HubCertificateEnds', 'hub_certificate_expiry_days', '13x60', '15x60'),
  gauge('HubCertificateEndsSoon', 'hub_certificate_expiry_days', '2x60', '13x60'),
  {
    alert: 'HubReleasesDiffer',
    fires: { 'hub_build_info{version="1"}': '1x60', 'hub_build_info{version="2"}': '1x60' },
    quiet: {
      'hub_build_info{version="1",instance="a"}': '1x60',
      'hub_build_info{version="1",instance="b"}': '1x60',
    },
  },
]

function gauge(alert: string, series: string, fires: string, quiet: string): AlertCase {
  return { alert, fires: { [series]: fires }, quiet: { [series]: quiet } }
}
