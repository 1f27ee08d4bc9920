import t from 'tap'
import { besideAttack } from './beside.ts'

t.test('events for 200 livestreams are taken, more are refused, and nobody else waits', async (t) => {
  const { seen, events, counters } = await besideAttack(t, 'many-livestreams')
  t.ok(seen.units > 0, 'events were acknowledged')
  const ofThePair = Object.values(events).reduce((sum, { sent }) => sum + sent, 0)
  t.ok((counters['hub_events_total{outcome=published}'] ?? 0) > ofThePair, 'those for 200 are published')
  t.ok((counters['hub_events_total{outcome=invalid}'] ?? 0) > 0, 'those for more are refused')
})
