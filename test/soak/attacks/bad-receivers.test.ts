import t from 'tap'
import type { AttackName } from '../../../bench/attacks/attacks.ts'
import { besideAttack } from './beside.ts'

t.jobs = 2

const receivers: readonly AttackName[] = [
  'slow-webhooks',
  'hanging-webhooks',
  'lying-webhooks',
  'flooding-webhooks',
  'hanging-targets',
  'lying-targets',
  'flooding-targets',
  'hanging-outputs',
  'lying-outputs',
  'flooding-outputs',
  'slow-folder',
]

for (const name of receivers) {
  t.test(`${name}: receivers that misbehave take nothing from the healthy one`, async (t) => {
    const { seen, pushes } = await besideAttack(t, name)
    if (name !== 'slow-folder') t.ok(seen.units > 0, 'they got something')
    for (const [phase, { sent, received }] of Object.entries(pushes ?? {})) {
      t.equal(received, sent, `${phase}: every push arrives`)
    }
    // They acknowledge after the attack.
    if (name === 'slow-webhooks')
      t.ok((pushes?.beside.meanwhile ?? 0) > 0, 'some arrive before a single late one was acknowledged')
  })
}
