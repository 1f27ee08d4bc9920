import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { eventLoopTimerMs } from '../../../telemetry/process-metrics.ts'
import { connect } from '../../clients.ts'
import { anchorsOf } from '../../documentation.ts'
import { freePort } from '../../free-port.ts'
import { patienceMs } from '../../patience.ts'
import { rawClient } from '../../raw-client.ts'
import { projectFile } from '../../root.ts'
import { startTestHub, type TestHub, temporaryDirectory } from '../../start-hub.ts'
import { alertCases } from './alerting.ts'

/*
 * Tests the files of deploy/prometheus and deploy/grafana with the Prometheus of Debian.
 */
const skip =
  spawnSync('promtool', ['--version']).status === 0
    ? false
    : 'NOT TESTED: there is no promtool (apt-get install prometheus)'

const metricsToken = 'a-secret-of-prometheus'

interface Rule {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; runbook: string }
}

const rulesPath = projectFile('deploy/prometheus/alerts.yml')
const rulesText = await readFile(rulesPath, 'utf8')
const rules: Rule[] = parse(rulesText).groups[0].rules
const dashboard = JSON.parse(await readFile(projectFile('deploy/grafana/dashboard.json'), 'utf8'))
/** The queries of the dashboard, as Grafana would send them for all nodes. */
const queries: string[] = [
  ...dashboard.panels.flatMap(expressionsOf),
  ...dashboard.annotations.list.map(({ expr }: { expr: string }) => expr),
].map((expr) => expr.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '10s'))

t.test('each alert fires when it should, and is quiet otherwise', { skip }, async (t) => {
  t.strictSame(
    [...new Set(alertCases.map(({ alert }) => alert))],
    rules.map(({ alert }) => alert),
    'there are cases for each',
  )
  const tests = alertCases.flatMap(({ alert, fires, quiet }) => [
    expecting(alert, fires, [{ labels: '{}', value: 1 }]),
    expecting(alert, quiet, []),
  ])
  const path = join(await temporaryDirectory(t), 'tests.yml')
  await writeFile(path, JSON.stringify({ rule_files: [rulesPath], evaluation_interval: '1m', tests }))
  await promisify(execFile)('promtool', ['test', 'rules', path])
  t.pass('promtool agrees')
})

t.test('the lag of an idle event loop is 0', { skip }, async (t) => {
  const [expr = ''] = queries.filter((query) => query.includes('eventloop_lag'))
  const seconds = eventLoopTimerMs / 1000
  const tests = [
    { measured: seconds, lag: 0 },
    { measured: seconds + 0.5, lag: 0.5 },
  ].map(({ measured, lag }) => ({
    interval: '1m',
    input_series: [
      { series: 'nodejs_eventloop_lag_p99_seconds{instance="a",job="hub"}', values: `${measured}` },
    ],
    promql_expr_test: [
      { expr, eval_time: '0m', exp_samples: [{ labels: '{instance="a",job="hub"}', value: lag }] },
    ],
  }))
  const path = join(await temporaryDirectory(t), 'tests.yml')
  await writeFile(path, JSON.stringify({ rule_files: [rulesPath], evaluation_interval: '1m', tests }))
  await promisify(execFile)('promtool', ['test', 'rules', path])
  t.pass('promtool agrees')
})

t.test('each alert names a section of the operators’ page', async (t) => {
  const page = await readFile(projectFile('docs/operators.md'), 'utf8')
  const sections = anchorsOf(page)
  for (const { alert, labels, annotations } of rules) {
    const [, section = ''] = /^docs\/operators\.md#([\w-]+): /.exec(annotations.runbook) ?? []
    t.ok(sections.has(section), `${alert}: ${annotations.runbook}`)
    t.ok(['page', 'ticket'].includes(labels.severity), alert)
    t.ok(page.includes(`| \`${alert}\` |`), `${alert} is in the table of alerts`)
  }
})

t.test('Prometheus scrapes a node, draws the dashboard and raises alerts', { skip }, async (t) => {
  const home = await temporaryDirectory(t)
  const feed = join(home, 'feed.json')
  await writeFile(feed, await readFile(projectFile('config/sample-feed.json')))
  const hub = await startTestHub(
    t,
    { HUB_FEED: feed, HUB_MAX_CONNECTIONS_PER_ADDRESS: '3', HUB_METRICS_TOKEN: metricsToken },
    home,
  )
  const prometheus = await startPrometheus(t, home, hub)

  await prometheus.until('up{job="hub"} == 1')
  const failures = hub.lines.filter(({ msg }) => msg === 'TLS connection failed').length
  // Prometheus hangs up after a second, so a pause of the machine makes a scrape fail.
  const scrapes = 'up{job="hub"}[5m]'
  const failedScrapes = `count_over_time(${scrapes}) - sum_over_time(${scrapes})`
  t.not((await prometheus.query(`${failedScrapes} >= ${failures}`)).length, 0, `${failures} failures of TLS`)
  const known = new Set([...(await prometheus.metricNames()), 'up', 'ALERTS'])
  for (const expr of [...rules.map(({ expr }) => expr), ...queries]) {
    const named = [...expr.matchAll(/\b(?:hub|process|nodejs)_\w+|\bup\b|\bALERTS\b/g)].map(([name]) => name)
    t.strictSame(
      named.filter((name) => !known.has(name)),
      [],
      `the node has what is asked for: ${expr}`,
    )
    await prometheus.query(expr)
  }
  for (const [series] of rules.flatMap(({ expr }) => [...expr.matchAll(/hub_\w+_total(?:{.*?})?/g)])) {
    t.ok(
      (await prometheus.query(series)).length > 0,
      `counted from 0, so that the first burst shows: ${series}`,
    )
  }
  // An alert about a pause of the machine ends by itself.
  let firing = await prometheus.firing()
  for (const end = performance.now() + patienceMs; firing.length > 0 && performance.now() < end; ) {
    await delay(100)
    firing = await prometheus.firing()
  }
  t.strictSame(firing, [], 'nothing is wrong with it')

  await writeFile(feed, '{}')
  await hub.ask('feed.refresh')
  await prometheus.until(isFiring('HubFeedFails'))
  const burst = await Promise.all(Array.from({ length: 6 }, () => rawClient(t, hub.mqttPort)))
  await prometheus.until(isFiring('HubConnectionsRefused', { reason: 'max-connections-per-address' }))
  for (const { socket } of burst) socket.destroy()
  const stranger = { username: 'nobody', password: 'wrong' }
  while ((await prometheus.query(isFiring('HubLogInsRefused'))).length === 0) {
    await t.rejects(connect(t, hub, stranger, { reconnectPeriod: 0 }))
  }
  await hub.close()
  await prometheus.until(isFiring('HubDown'))
})

function expressionsOf(panel: { targets: { expr: string }[] }): string[] {
  return panel.targets.map(({ expr }) => expr)
}

function expecting(alert: string, series: Record<string, string>, samples: object[]) {
  const input = Object.entries(series).map(([series, values]) => ({ series, values }))
  const expr = `count(${isFiring(alert)})`
  const asked = { expr, eval_time: '60m', exp_samples: samples }
  return { name: alert, interval: '1m', input_series: input, promql_expr_test: [asked] }
}

function isFiring(alertname: string, labels: Record<string, string> = {}): string {
  const matchers = Object.entries({ alertstate: 'firing', alertname, ...labels })
  return `ALERTS{${matchers.map(([name, value]) => `${name}="${value}"`).join()}}`
}

/** Starts Prometheus with the files of deploy/, with seconds in place of minutes. */
async function startPrometheus(t: Test, home: string, hub: TestHub) {
  const config = (await readFile(projectFile('deploy/prometheus/prometheus.yml'), 'utf8'))
    .replaceAll('15s', '1s')
    .replace(/targets: .*/, `targets: ["localhost:${hub.httpsPort}"]`)
    .replace(/credentials_file: .*/, `credentials_file: ${join(home, 'token')}`)
    .replace(/#tls_config:\n\s*#.*/, `tls_config: { ca_file: ${hub.caPath} }`)
  await writeFile(join(home, 'token'), metricsToken)
  await writeFile(join(home, 'prometheus.yml'), config)
  await writeFile(
    join(home, 'alerts.yml'),
    rulesText.replace(/for: \d+[mh]/g, 'for: 1s').replace(/\[(\d+)[mh]\]/g, '[10s]'),
  )
  const port = await freePort()
  const process = spawn(
    'prometheus',
    [
      `--config.file=${join(home, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(home, 'tsdb')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const ended = once(process, 'exit')
  t.teardown(async () => {
    process.kill('SIGKILL')
    await ended
  })
  const output: string[] = []
  await new Promise<void>((resolve, reject) => {
    createInterface({ input: process.stderr }).on('line', (line) => {
      output.push(line)
      if (line.includes('ready to receive web requests')) resolve()
    })
    void ended.then(() => reject(new Error(output.join('\n'))))
  })
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)
    const { status, data, error } = (await answer.json()) as { status: string; data: unknown; error?: string }
    if (status !== 'success') throw new Error(`${path}: ${error}`)
    return data
  }
  const query = async (expr: string) =>
    ((await ask(`query?query=${encodeURIComponent(expr)}`)) as { result: unknown[] }).result
  return {
    query,
    /** The names of all metrics of the node, also of metrics without values. */
    metricNames: async () =>
      Object.keys((await ask('metadata')) as object).flatMap((name) => [name, `${name}_bucket`]),
    firing: () => query('ALERTS{alertstate="firing"}'),
    /** Repeats the query until it has a result. */
    async until(expr: string): Promise<void> {
      while ((await query(expr)).length === 0) await delay(100)
    },
  }
}
