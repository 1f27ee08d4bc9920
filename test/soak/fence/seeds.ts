import type { Test } from 'tap'
import { withoutRedis } from '../../redis-server.ts'
import { check } from './check.ts'
import { describeFault } from './faults.ts'

type Checked = Parameters<typeof check>[1]

const first = Number(process.env.FENCE_SEED ?? 1)
const seconds = Number(process.env.FENCE_SECONDS ?? 30)
const kinds = process.env.FENCE_FAULTS?.split(',')

/**
 * Checks nodes under the faults of `count` seeds, one after the other. `FENCE_COUNT` overrides `count`; test/README.md
 * describes the FENCE_ variables.
 */
export function checkSeeds(
  t: Test,
  of: Omit<Checked, 'seed' | 'seconds' | 'backend'> & {
    topology: string
    count: number
    needsRedis: boolean
    openBackend: (t: Test) => Promise<Checked['backend']> | Checked['backend']
  },
): void {
  const { topology, needsRedis, openBackend, isWanted = () => true, ...checked } = of
  const count = Number(process.env.FENCE_COUNT ?? of.count)
  const timeout = (seconds + 300) * 1000
  t.setTimeout(count * timeout)
  for (let seed = first; seed < first + count; seed++) {
    t.test(
      `${topology}, faults of seed ${seed} for ${seconds} s`,
      { skip: needsRedis && withoutRedis, timeout },
      async (t) => {
        const { faults, findings, trails, summary } = await check(t, {
          ...checked,
          seed: String(seed),
          seconds,
          backend: await openBackend(t),
          isWanted: (fault) => (kinds?.includes(fault.kind) ?? true) && isWanted(fault),
        })
        t.comment(`seed ${seed}: ${summary}`)
        for (const { claim, problems } of findings) {
          t.same(problems.slice(0, 10), [], `${claim}${problems.length > 0 ? ` (${problems.length})` : ''}`)
        }
        if (t.passing()) return
        for (const line of [...faults.map(describeFault), ...trails]) t.comment(line)
      },
    )
  }
}
