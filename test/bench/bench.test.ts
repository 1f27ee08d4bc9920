import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'

const program = fileURLToPath(new URL('../../bench/bench.ts', import.meta.url))
const loader = `--import=${import.meta.resolve('tsx')}`
/** Without what the test runner adds to every Node process: the compiler does not stand it. */
const bench = (...options: string[]) =>
  promisify(execFile)('env', ['-u', 'NODE_OPTIONS', process.execPath, loader, program, ...options])

t.test('a scenario ends by itself and prints one JSON value', async (t) => {
  const short = ['--subscribers', '3', '--seconds', '1', '--runs', '1', '--warm', '24']
  const options = [...short, '--peers', 'hub,aedes', '--json']
  const { machine, results } = JSON.parse((await bench('latency', ...options)).stdout)
  t.match(machine, { cpu: String, memory: String, versions: /^Node / })
  const { rows } = results.latency
  t.strictSame(
    rows.map(({ system }: { system: string }) => system),
    ['hub', 'plain Aedes'],
  )
  for (const { figures } of rows) {
    t.equal(figures.lost, 0)
    t.ok(figures.p50 > 0 && figures.p50 <= figures.p99)
  }
  t.ok(rows[0].ratios['plain Aedes'].p99 > 0)
})

t.test('what it does not know is wrong usage', async (t) => {
  for (const options of [['nothing'], ['latency', '--wrong', '1'], ['latency', '--peers', 'nobody']]) {
    await t.rejects(bench(...options), { code: 2 }, options.join(' '))
  }
})
