import t from 'tap'
import { besideAttack } from './beside.ts'

t.test('webhooks that acknowledge late take no place from those of another institution', async (t) => {
  const { seen, pushes } = await besideAttack(t, 'slow-webhooks', { seconds: 8 })
  t.ok(seen.units > 0, 'the late ones got their events')
  for (const [phase, { sent, received }] of Object.entries(pushes ?? {})) {
    t.equal(received, sent, `${phase}: every push arrives`)
  }
  t.ok((pushes?.beside.meanwhile ?? 0) > 0, 'some arrive before a single late one was acknowledged')
})
