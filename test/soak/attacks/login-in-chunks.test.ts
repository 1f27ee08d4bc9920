import t from 'tap'
import { besideAttack } from './beside.ts'

t.test("a stranger's log-ins in chunks of one byte neither fill nor stop a node", async (t) => {
  const { seen } = await besideAttack(t, 'login-in-chunks')
  t.ok(seen.units > 0, 'chunks were sent')
})
