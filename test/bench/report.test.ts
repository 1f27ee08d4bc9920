import { readFileSync } from 'node:fs'
import t from 'tap'
import { readArguments } from '../../bench/arguments.ts'
import { goals } from '../../bench/goals.ts'
import { delaysOf } from '../../bench/load/delays.ts'
import { introduction, summarize, toTables } from '../../bench/report.ts'
import type { Sample, Scenario } from '../../bench/scenario.ts'
import { projectFile } from '../root.ts'

const scenario: Scenario = {
  about: '',
  options: {},
  figures: { cpu: 'CPU, µs', lost: 'lost' },
  compared: ['cpu'],
  measure: async () => [],
}

function sample(system: string, run: number, cpu: number): Sample {
  return { case: 'ten subscribers', system, run, figures: { cpu, lost: 0 } }
}

const samples = [
  ...[10, 30, 20].map((cpu, run) => sample('hub', run, cpu)),
  // The ratio of the medians (20 and 20) would be 1.
  ...[5, 20, 40].map((cpu, run) => sample('other', run, cpu)),
]

t.test('figures are medians of the runs, ratios medians of the ratios within a run', async (t) => {
  const [ours, other] = summarize(samples, scenario)
  t.match(ours, { system: 'hub', runs: 3, figures: { cpu: 20, lost: 0 } })
  t.same(ours?.ratios, { other: { cpu: 1.5 } })
  t.match(other, { system: 'other', figures: { cpu: 20 } })
  t.equal(other?.ratios, undefined)
})

t.test('a run in which nothing came has no part in a median', async (t) => {
  t.same(delaysOf([]), { p50: NaN, p99: NaN, max: NaN })
  const [ours] = summarize([...samples, sample('hub', 3, NaN), sample('other', 3, 1)], scenario)
  t.match(ours, { runs: 4, figures: { cpu: 20 }, ratios: { other: { cpu: 1.5 } } })
  const [none] = summarize([sample('hub', 1, NaN)], scenario)
  t.match(toTables(none ? [none] : [], scenario), /\| ten subscribers \| hub +\| +– \| +0 \|$/)
})

t.test('the tables are Markdown, the ratios in one of their own', async (t) => {
  const [figures = '', ratios = ''] = toTables(summarize(samples, scenario), scenario).split('\n\n')
  t.match(figures, /^\| case +\| system \| CPU, µs \| lost \|\n\| -+ \| -+ \| -+: \| -+: \|\n/)
  t.match(ratios, /\| ten subscribers \| hub ÷ other \| 1\.50 \|$/)
})

t.test('what stands in a table of its own is left out of the others', async (t) => {
  const others = [{ case: 'none', system: 'hub', run: 1, figures: { lost: 7 } }]
  const tables = { ...scenario, compared: [], tables: [['cpu'], ['lost'], []] }
  const [cpu = '', lost = '', none] = toTables(
    summarize([sample('hub', 1, 10), ...others], tables),
    tables,
  ).split('\n\n')
  t.match(cpu, /^\| case +\| system \| CPU, µs \|\n.*\n\| ten subscribers \| hub +\| +10 \|$/)
  t.match(lost, /^\| case +\| system \| lost \|\n.*\n\| ten subscribers .*\n\| none +\| hub +\| +7 \|$/)
  t.equal(none, undefined)
})

t.test('yes and no, and what never came', async (t) => {
  const figures = { lost: 'lost', survived: 'survived' }
  const rows = summarize(
    [{ case: 'attacked', system: 'hub', run: 1, figures: { lost: Infinity, survived: 0 } }],
    { ...scenario, figures, compared: [] },
  )
  t.match(
    toTables(rows, { ...scenario, figures, yesNo: ['survived'] }),
    /\| attacked +\| hub +\| +∞ \| +no \|$/,
  )
})

t.test('the page begins with what the hub is measured by, and each command of that is one', async (t) => {
  t.ok(readFileSync(projectFile('docs/benchmarks.md'), 'utf8').startsWith(introduction))
  for (const { command } of goals) t.match(readArguments(command.split(' ')), { runs: [{}] }, command)
})
