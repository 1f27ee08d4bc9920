import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { commandOf } from '../../root.ts'
import { between, words } from '../../words.ts'

const [command = '', ...args] = commandOf('bench/bench.ts')
const bench = (...options: string[]) => promisify(execFile)(command, [...args, ...options])

// The tests mostly wait, so several run at the same time.
t.jobs = 2

t.test('cold and idle: systems that are started anew', async (t) => {
  const short = ['--seconds', '1', '--runs', '1', '--json']
  const sizes = ['--publishers', '2', '--share', '20', '--warm', '50', '--load', '70', '--subscribers', '2']
  const { rows } = JSON.parse((await bench('cold', ...sizes, '--peers', 'hub', ...short)).stdout).results.cold
  t.strictSame(
    rows.map((row: { case: string }) => row.case),
    ['acknowledged right after the start', 'acknowledged when warm', '2 subscribers, right after the start'],
  )
  for (const { figures } of rows) t.equal(figures.lost, 0)
  t.ok(rows[0].figures.times > 0)
  const few = ['--first', '20', '--connections', '20', '--runs', '1', '--json']
  const { results } = JSON.parse((await bench('idle', ...few, '--peers', 'hub,bare')).stdout)
  t.match(results.idle.rows[0].ratios, { 'bare sockets': { kilobytes: Number, cpu: Number } })
})

t.test('post and push: the hub beside the least that takes and posts events', async (t) => {
  const posted = await bench('post', '--events', '40', '--connections', '2', '--runs', '1', '--json')
  const [hub, fastify] = JSON.parse(posted.stdout).results.post.rows
  t.match(hub, { system: 'hub', figures: { refused: 0 }, ratios: { 'bare Fastify': { rate: Number } } })
  t.match(fastify, { system: 'bare Fastify', figures: { refused: 0 } })
  const few = ['--healthy', '2', '--dead', '1', '--events', '3', '--burst', '2', '--runs', '1', '--json']
  const { rows } = JSON.parse((await bench('push', ...few)).stdout).results.push
  t.strictSame(
    rows.map((row: { case: string; system: string }) => `${row.system}: ${row.case}`),
    [
      'hub: 2 webhooks',
      'bare client: 2 webhooks',
      'hub: 2 events at once',
      'bare client: 2 events at once',
      'hub: beside 1 dead ones',
    ],
  )
  t.ok(rows[2].ratios['bare client'].rate > 0)
})

t.test('slow-disk: PUBACK and persistent sessions wait for the disk, clean ones do not', async (t) => {
  const short = words(`--seconds 1 --sessions 2 --delay 500 --load 70 --runs 1 --json`)
  const { rows } = JSON.parse((await bench('slow-disk', ...short)).stdout).results['slow-disk']
  const [clean, persistent, puback] = rows.map((row: { figures: object }) => row.figures)
  t.ok(persistent.p50 >= 500 && puback.p50 >= 500)
  // A busy machine delays both alike.
  t.ok(persistent.p50 - clean.p50 >= 250)
  t.match(puback, { events: 20, exceeded: Number, lost: 0 })
})

t.test(
  'a scenario ends by itself and prints one JSON value, also with the node of another commit',
  async (t) => {
    const short = ['--subscribers', '3', '--seconds', '1', '--runs', '2', '--warm', '24']
    const other = ['--before', 'HEAD', '--node', process.execPath]
    const options = ['latency', ...short, '--peers', 'hub,aedes', ...other, '--json']
    const { machine, results } = JSON.parse((await bench(...options)).stdout)
    t.match(machine, { cpu: String, memory: String, versions: /^Node / })
    const { rows } = results.latency
    t.strictSame(
      rows.map(({ system }: { system: string }) => system),
      ['hub', 'before', 'plain Aedes'],
    )
    for (const { figures, runs } of rows) {
      t.equal(runs, 2, 'the second one with systems that start in the opposite order')
      t.equal(figures.lost, 0)
      t.ok(figures.p50 > 0 && figures.p50 <= figures.p99)
    }
    t.ok(rows[0].ratios.before.p99 > 0 && rows[0].ratios['plain Aedes'].p99 > 0)
  },
)

t.test('workers: a hub with two beside one with one', async (t) => {
  const short = ['--subscribers', '4', '--seconds', '1', '--runs', '1', '--warm', '24', '--json']
  const { rows } = JSON.parse((await bench('workers', ...short)).stdout).results.workers
  t.strictSame(
    rows.map((row: { case: string; system: string }) => `${row.system}: ${row.case}`),
    ['0', '1'].flatMap((qos) =>
      ['two workers', 'one worker'].map((system) => `${system}: 4 subscribers, QoS ${qos}`),
    ),
  )
  for (const { figures } of rows) t.equal(figures.lost, 0)
  t.ok(rows[0].ratios['one worker'].perSecond > 0)
})

t.test('nodes: what an event and a client cost the other node', async (t) => {
  const short = ['--events', '20', '--connections', '3', '--runs', '1', '--warm', '24', '--json']
  const { rows } = JSON.parse((await bench('nodes', ...short)).stdout).results.nodes
  t.strictSame(
    rows.map((row: { case: string }) => row.case),
    ['an event', 'a clean log-in', 'the end of a clean session'],
  )
  for (const { figures } of rows) t.ok(figures.commands > 0)
})

t.test('--before says why a commit cannot be measured', async (t) => {
  const unknown = { code: 1, stderr: /no-such-commit is no commit of this repository/ }
  await t.rejects(bench('latency', '--before', 'no-such-commit'), unknown)
  const noNode = ['--before', 'HEAD', '--node', '/nothing/node']
  await t.rejects(bench('latency', ...noNode), { code: 1, stderr: /spawn \/nothing\/node ENOENT/ })
})

t.test('sessions: four comparisons, each kind beside the one that it is measured by', async (t) => {
  const sizes = words(`--offline 0,3 --connected 3 --returning 3 --topics 12 --crashed 3`)
  const short = ['--events', '20', '--seconds', '1', '--warm', '24', '--runs', '1']
  const { stdout } = await bench('sessions', '--peers', 'hub', ...sizes, ...short, '--json')
  const { rows } = JSON.parse(stdout).results.sessions
  t.strictSame(
    rows.map((row: { case: string }) => row.case),
    between(`
      0 offline sessions | 3 offline sessions | 3 connected clean sessions, QoS 1 |
      3 connected persistent sessions, QoS 1 | 3 clean sessions subscribe, 12 topics |
      3 persistent sessions return, 12 topics | 3 persistent sessions return after kill -9
    `),
  )
  const [, offline, , connected, , returned, crashed] = rows.map((row: { figures: object }) => row.figures)
  t.match(offline, { cpuTimes: Number, acknowledged: 100 })
  t.match(connected, { deliveryTimes: Number, deliveryLost: 0 })
  t.match(returned, { servedTimes: Number, missing: 0 })
  t.match(crashed, { back: Number, pairLost: 0 })
})

t.test('attacks: a row for each, and 1 at the end when one is outside of the measure', async (t) => {
  const short = ['--alone', '1', '--seconds', '1', '--after', '1', '--runs', '1', '--tries', '1']
  const few = ['--connections', '1', '--addresses', '1', '--json']
  const options = ['attacks', '--only', 'pipelined-gets,empty-services', ...short, ...few]
  const { code = 0, stdout } = await bench(...options).catch((error) => error)
  const { rows } = JSON.parse(stdout).results.attacks
  t.strictSame(
    rows.map((row: { case: string }) => row.case),
    ['pipelined-gets', 'empty-services'],
  )
  for (const { figures } of rows) {
    t.ok(figures.sent > 0 && figures.alone50 <= figures.alone99 && figures.beside99 > 0)
    t.equal(figures.survived, 1)
  }
  const isWithin = rows.every(({ figures }: { figures: { within: number } }) => figures.within === 1)
  t.equal(code, isWithin ? 0 : 1)
})

t.test('targets: a livestream that is answered late delays no other one', async (t) => {
  const few = ['--targets', '2', '--livestreams', '3', '--late', '1', '--events', '9', '--rate', '20']
  const { stdout } = await bench('targets', ...few, '--runs', '1', '--json')
  const { rows } = JSON.parse(stdout).results.targets
  t.match(
    rows.map(({ figures }: { figures: object }) => figures),
    [
      { p99: Number, lost: 0, held: 0 },
      { p99: Number, lost: 0 },
    ],
  )
  t.ok(rows[1].figures.held > 0)
})

t.test('client: the library beside the package mqtt, with a ratio for each way without it', async (t) => {
  const { stdout } = await bench('client', '--events', '20', '--warm', '20', '--runs', '1', '--json')
  const { rows } = JSON.parse(stdout).results.client
  t.strictSame(
    rows.map(({ system }: { system: string }) => system),
    ['mqtt, no feedback', 'mqtt, parses feedback', 'client library'],
  )
  for (const { figures } of rows) t.ok(figures.cpu > 0)
  const { ratios } = rows[2]
  t.ok(ratios['mqtt, no feedback'].cpu > 0 && ratios['mqtt, parses feedback'].cpu > 0)
})

t.test('--help goes to the output, and what is wrong to the errors', async (t) => {
  t.match(await bench('--help'), { stdout: /^npm run bench -- .*\n {2}latency /, stderr: '' })
  await t.rejects(bench('nothing'), { code: 2, stdout: '', stderr: /^nothing is unknown\nnpm run bench -- / })
})
