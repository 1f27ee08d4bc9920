import t from 'tap'
import { besideAttack } from './beside.ts'

t.test('bodies of events in chunks of one byte neither fill nor stop a node', async (t) => {
  const { seen } = await besideAttack(t, 'events-in-chunks')
  t.ok(seen.units > 0, 'chunks were sent')
})
