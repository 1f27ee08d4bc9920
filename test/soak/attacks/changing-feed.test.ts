import t from 'tap'
import { besideAttack } from './beside.ts'

t.test(
  'a feed of 20,000 livestreams that changes every second is taken, and nobody else waits',
  async (t) => {
    const { seen, counters } = await besideAttack(t, 'changing-feed')
    t.ok(seen.units > 1, 'the feed has changed')
    t.equal(
      counters['hub_events_total{outcome=blocked}'] ?? 0,
      0,
      'every livestream of the pair stays in the feed',
    )
  },
)
