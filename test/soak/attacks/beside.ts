import type { Test } from 'tap'
import type { Force } from '../../../bench/attacks/attack.ts'
import { type AttackName, attacks, type Plan } from '../../../bench/attacks/attacks.ts'
import { besiege, type Outcome } from '../../../bench/attacks/siege.ts'

const maxGrowthBytes = 150 * 1024 * 1024
/** Memory limit of the node, MiB. Without a limit, V8 would collect garbage late on a large machine. */
const nodeMemory = 1024

/**
 * Attacks a node for a few seconds, while the pair (a publisher and a subscriber that behave well) uses the node.
 * Asserts what must hold on every machine: the node survives, the pair loses no event, and memory growth is bounded.
 * `npm run bench -- attacks` measures the latency, which depends on the machine (docs/decisions, "Attacks are
 * measured beside a healthy pair").
 */
export async function besideAttack(
  t: Test,
  name: AttackName,
  of: { seconds?: number; force?: Partial<Force>; env?: Record<string, string> } = {},
): Promise<Outcome> {
  const { seconds = 6, ...more } = of
  const outcome = await besiege(name, {
    alone: 1,
    attack: seconds,
    after: 1,
    apart: false,
    memory: nodeMemory,
    ...more,
  })
  t.ok(outcome.survived, 'the node lives')
  for (const [phase, { sent, acknowledged, received }] of Object.entries(outcome.events)) {
    t.ok(sent > 0, `${phase}: the pair was there`)
    t.equal(acknowledged, sent, `${phase}: every event of the pair is acknowledged`)
    t.equal(received, sent, `${phase}: every event of the pair arrives`)
  }
  const mebibytes = Math.round(outcome.memory.growth / 1024 / 1024)
  const { files: most = Infinity }: Plan = attacks[name]
  t.ok(outcome.files <= most, `${outcome.files} more open files, at most ${most}`)
  t.ok(outcome.memory.growth < maxGrowthBytes, `memory grew by ${mebibytes} MiB, less than 150`)
  return outcome
}
