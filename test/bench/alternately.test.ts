import t from 'tap'
import { alternately } from '../../bench/stage.ts'

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

/** How often one act comes right after another one. */
function follows(runs: readonly string[], act: string, other: string): number {
  return runs.filter((run) => run.includes(other + act)).length
}
