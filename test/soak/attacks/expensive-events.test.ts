import t from 'tap'
import type { AttackName } from '../../../bench/attacks/attacks.ts'
import { besideAttack } from './beside.ts'

for (const name of ['empty-services', 'numbers-as-ids', 'unknown-properties'] satisfies AttackName[]) {
  t.test(`events made to be expensive, at the allowed rate: ${name}`, async (t) => {
    const { seen, counters } = await besideAttack(t, name)
    t.ok(seen.units > 0, 'events were acknowledged')
    t.ok((counters['hub_events_total{outcome=invalid}'] ?? 0) >= seen.units, 'each is refused, and counted')
  })
}
