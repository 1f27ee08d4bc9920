import t from 'tap'
import { besideAttack } from './beside.ts'

t.test('events for 20 livestreams each, outside of the feed, keep nobody waiting', async (t) => {
  const { seen, counters } = await besideAttack(t, 'new-livestreams', { seconds: 2 })
  t.ok((seen.answers['201'] ?? 0) > 0, 'they were judged')
  t.ok((counters['hub_events_total{outcome=topic-created}'] ?? 0) > 0, 'and made topics')
})
