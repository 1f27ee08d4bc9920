import { readFile } from 'node:fs/promises'
import { Registry } from 'prom-client'
import t from 'tap'
import { createLabelledCounters } from '../../telemetry/labelled-counters.ts'
import { projectFile } from '../root.ts'

/*
 * Counters must begin with 0. A counter that first appears with a burst shows Prometheus no growth. Then no alert
 * fires.
 */
t.test('counters with known label values begin with 0, and the operators’ page has each value', async (t) => {
  const page = await readFile(projectFile('docs/operators.md'), 'utf8')
  for (const counter of Object.values(createLabelledCounters(new Registry()))) {
    const { name, values } = await counter.get()
    const row = page.split('\n').find((line) => line.startsWith(`| \`${name}\` |`))
    t.ok(values.length > 1, `${name} is there before anything was counted`)
    for (const { value: count, labels } of values) {
      const [label, value] = Object.entries(labels).flat()
      t.equal(count, 0, `${name}: ${value}`)
      t.match(row, `| \`${label}\` |`)
      t.match(row, `\`${value}\``, `${name}: ${value} is documented`)
    }
  }
})
