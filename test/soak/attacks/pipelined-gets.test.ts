import t from 'tap'
import { besideAttack } from './beside.ts'

for (const connections of [5, 100]) {
  t.test(`pipelined requests over ${connections} connections whose answers nobody reads`, async (t) => {
    const { seen } = await besideAttack(t, 'pipelined-gets', {
      seconds: 5,
      force: { connections, addresses: 20 },
    })
    t.ok(seen.bytes > 0, 'requests were sent')
  })
}
