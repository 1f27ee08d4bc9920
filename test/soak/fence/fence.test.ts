import t from 'tap'
import { withoutRedis } from '../../redis-server.ts'
import { check } from './check.ts'
import { ownBackend, startBackend } from './cluster.ts'
import { describeFault, type Fault } from './faults.ts'
import { startSentinelBackend } from './sentinel.ts'

/*
 * CONTRIBUTING.md, "How tests are written", describes the FENCE_ variables.
 */
const first = Number(process.env.FENCE_SEED ?? 1)
const count = Number(process.env.FENCE_COUNT ?? 2)
const kinds = process.env.FENCE_FAULTS?.split(',')
/** Additional settings of the nodes. */
const settings =
  process.env.FENCE_REPLICAS === undefined ? {} : { HUB_REDIS_REPLICAS: process.env.FENCE_REPLICAS }
const isReplicated = process.env.FENCE_STORE === 'sentinel'
/** One node with a store of its own, which is killed and stopped. */
const isAlone = process.env.FENCE_STORE === 'embedded'
const happensAlone = ({ target, kind }: Fault) => target === 0 && (kind === 'kill' || kind === 'stop')
const seconds = Number(process.env.FENCE_SECONDS ?? 30)

t.setTimeout(count * (seconds + 300) * 1000)

for (let seed = first; seed < first + count; seed++) {
  t.test(
    `${isAlone ? 'one node' : 'three nodes'}, faults of seed ${seed} for ${seconds} s`,
    { skip: isAlone ? false : withoutRedis, timeout: (seconds + 300) * 1000 },
    async (t) => {
      const backend = isAlone
        ? ownBackend()
        : isReplicated
          ? await startSentinelBackend(t)
          : await startBackend(t)
      const { faults, findings, trails, summary } = await check(t, {
        seed: String(seed),
        seconds,
        backend,
        settings,
        count: isAlone ? 1 : 3,
        mayLose: isReplicated,
        isWanted: (fault) => (kinds?.includes(fault.kind) ?? true) && (!isAlone || happensAlone(fault)),
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
