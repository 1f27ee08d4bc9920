import t from 'tap'
import { besideAttack } from './beside.ts'

t.jobs = 2

for (const name of ['openapi-reads', 'metrics-reads', 'livestream-reads', 'history-reads'] as const) {
  t.test(`${name}: documents that are read in a loop keep nobody waiting`, async (t) => {
    const { seen } = await besideAttack(t, name, { seconds: 2 })
    t.ok(seen.units > 0, 'requests were sent')
  })
}
