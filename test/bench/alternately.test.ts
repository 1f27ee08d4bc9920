import t from 'tap'
import { alternately, bothWays } from '../../bench/stage.ts'

for (const acts of ['ab', 'abc', 'abcd']) {
  t.test(`${acts}: no act has an advantage from its place`, async (t) => {
    const played: string[] = []
    await alternately([...acts], acts.length * 2, async (act, run) => {
      played[run] = (played[run] ?? '') + act
    })
    const runs = played.slice(1)
    for (const run of runs) t.equal([...run].sort().join(''), acts, 'all play in each run')
    for (const act of acts) {
      for (const place of acts.split('').keys())
        t.equal(runs.filter((run) => run[place] === act).length, 2, `${act} at ${place}`)
      for (const other of acts)
        t.equal(follows(runs, act, other), follows(runs, other, act), `${act} after ${other} as before it`)
    }
    for (let pair = 0; pair < runs.length; pair += 2)
      t.equal([...(runs[pair] ?? '')].reverse().join(''), runs[pair + 1], 'two runs are balanced')
  })
}

t.test('half of the runs have systems that start in the opposite order', async (t) => {
  const started: string[] = []
  const samples = await bothWays(
    [...'ab'],
    6,
    () => {},
    async (acts, runs) => {
      started.push(acts.join(''))
      return alternately(acts, runs, async (system, run) => ({ case: 'same', system, run, figures: {} }))
    },
  )
  t.same(started, ['ab', 'ba'])
  t.equal(samples.map(({ system, run }) => system + run).join(' '), 'a1 b1 b2 a2 b3 a3 b4 a4 a5 b5 a6 b6')
  await bothWays(
    ['a'],
    6,
    () => {},
    async (acts, runs) => {
      started.push(`${acts} ${runs}`)
      return []
    },
  )
  t.equal(started[2], 'a 6', 'one alone has no order')
})

/** How often one act comes right after another one. */
function follows(runs: readonly string[], act: string, other: string): number {
  return runs.filter((run) => run.includes(other + act)).length
}
