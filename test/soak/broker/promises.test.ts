import fc from 'fast-check'
import t from 'tap'
import { defaultBounds } from '../../../broker/session/session.ts'
import { play } from '../../broker/promises/play.ts'
import { type Sequence, type Step, sequences } from '../../broker/promises/steps.ts'

/*
 * Plays random sequences of steps, in which nodes crash and start again. Each session must get the messages that
 * `promises.ts` says. The variables `PROMISES_…` are in CONTRIBUTING.md, "How tests are written".
 */
const runs = Number(process.env.PROMISES_RUNS ?? 250)
const seed = Number(process.env.PROMISES_SEED ?? 1)
const path = process.env.PROMISES_PATH
const except = process.env.PROMISES_EXCEPT ? new RegExp(process.env.PROMISES_EXCEPT) : undefined
const longestMs = 60_000 + runs * 500

t.test(`${runs} sequences keep the promises, seed ${seed}`, { timeout: 2 * longestMs }, async (t) => {
  if (process.env.PROMISES_SURVEY) return survey(t)
  const holds = fc.asyncProperty(sequences, async (sequence) => {
    const problems = await play(sequence, except)
    if (problems.length > 0) throw new Error(problems.join('\n'))
  })
  const given = path === undefined ? {} : { path }
  await t.resolves(
    fc.assert(holds, { numRuns: runs, seed, ...given, interruptAfterTimeLimit: longestMs }),
    `PROMISES_SEED=${seed}`,
  )
})

t.test(
  `a node forgets nothing that is older than a second, seed ${seed}`,
  { timeout: 120_000 },
  async (t) => {
    const some = fc.sample(sequences, { numRuns: 12, seed })
    const found = await Promise.all(some.map((sequence) => play(withPauses(sequence), except)))
    for (const [index, problems] of found.entries()) {
      const [sequence] = some.slice(index)
      if (sequence && problems.length > 0) t.fail(shown(withPauses(sequence), problems))
    }
  },
)

t.test('what was acknowledged while no event came is not repeated after a crash', async (t) => {
  const bounds = { windowBytes: 1, history: 100, ...defaultBounds, queueLimit: 1_000 }
  const cases = [1, 2].flatMap((nodes) => ([1, 2] as const).map((qos) => ({ nodes, qos })))
  await Promise.all(
    cases.map(async ({ nodes, qos }) => {
      const steps: Step[] = [
        { act: 'return', who: 0, node: 0, holds: false },
        { act: 'subscribe', who: 0, granted: [['every/1', qos]] },
        { act: 'leave', who: 0, isClean: true, rests: true },
        {
          act: 'publish',
          node: 0,
          drafts: [{ topic: 'every/1', age: 0, lasts: undefined, qos }],
          waits: true,
        },
        { act: 'pause' },
        { act: 'return', who: 0, node: 0, holds: false },
        { act: 'pause' },
        { act: 'crash', node: 0, turns: 0 },
      ]
      t.same(await play({ nodes, sessions: 1, bounds, steps }), [], `${nodes} nodes, QoS ${qos}`)
    }),
  )
})

/**
 * Replaces the first crash by a pause and a crash of node 0. In the pause, the node stores the acknowledgements. A
 * sequence without a crash gets both at its end.
 */
function withPauses({ steps, ...rest }: Sequence): Sequence {
  const pause: Step = { act: 'pause' }
  const isCrash = ({ act }: Step) => act === 'crash'
  const first = steps.findIndex(isCrash)
  const head = first < 0 ? steps : steps.slice(0, first)
  const tail = first < 0 ? [] : steps.slice(first + 1)
  return { ...rest, steps: [...head, pause, { act: 'crash', node: 0, turns: 0 }, ...tail] }
}

/** Reports each kind of problem, with the number of sequences and the shortest sequence. */
async function survey(t: { comment(text: string): void; same(found: unknown, wanted: unknown): void }) {
  const kinds = new Map<string, { count: number; shortest: string }>()
  for (const sequence of fc.sample(sequences, { numRuns: runs, seed })) {
    const problems = await play(sequence, except)
    for (const kind of new Set(problems.map((problem) => `${sequence.nodes}: ${kindOf(problem)}`))) {
      const text = shown(sequence, problems)
      const { count, shortest } = kinds.get(kind) ?? { count: 0, shortest: text }
      kinds.set(kind, { count: count + 1, shortest: text.length < shortest.length ? text : shortest })
    }
  }
  const sorted = [...kinds].sort(([, a], [, b]) => b.count - a.count)
  for (const [kind, { count, shortest }] of sorted) t.comment(`${count} × ${kind}\n${shortest}`)
  t.same(
    sorted.map(([kind, { count }]) => `${count} × ${kind}`),
    [],
  )
}

function kindOf(problem: string): string {
  return problem
    .replace(/^(step \d+|in the end): /, '')
    .replace(/\(\w+\/./g, '(')
    .replace(/\d+/g, 'N')
}

function shown({ nodes, bounds, steps }: Sequence, problems: readonly string[]): string {
  return [
    `${nodes} nodes`,
    JSON.stringify(bounds),
    ...steps.map((step) => JSON.stringify(step)),
    ...problems,
  ].join('\n')
}
