import t from 'tap'
import { besideAttack } from './beside.ts'

t.test('a CONNECT in TLS records of one byte, from strangers', async (t) => {
  const { seen } = await besideAttack(t, 'records-before-login', { seconds: 8, force: { pieces: 600_000 } })
  t.ok(seen.units > 0, `${seen.units} records were sent`)
  t.ok(seen.cut > 0, `${seen.cut} connections were ended by the node`)
})

t.test('a PUBLISH in TLS records of one byte', async (t) => {
  const { seen } = await besideAttack(t, 'records-in-publish', { seconds: 8, force: { pieces: 600_000 } })
  t.ok(seen.units > 0, `${seen.units} records were sent`)
  t.ok(seen.cut > 0, `${seen.cut} connections were ended by the node`)
})
