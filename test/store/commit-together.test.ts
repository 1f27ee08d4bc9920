import t from 'tap'
import { type CommitPart, commitTogether } from '../../store/commit-together.ts'
import type { Change } from '../../store/store.ts'

/** A part that notes what is done to it. */
function partOf(name: string, notes: string[]): () => CommitPart {
  return () => {
    notes.push(`${name} prepared`)
    return {
      changes: [{ put: `record/${name}`, value: name }],
      begin: (first) => void notes.push(`${name} begun at ${first}`),
      end(how) {
        notes.push(`${name} ended: ${how}`)
        return undefined
      },
    }
  }
}

/** A driver that calls back early, late, or not at all, and stores or fails. */
function storeThat(calls: boolean, failure?: Error) {
  const stored: Change[][] = []
  return {
    stored,
    async commit(changes: readonly Change[], underway?: (first: number) => void) {
      if (calls) underway?.(7)
      await undefined
      if (failure) throw failure
      stored.push([...changes])
      return 7
    },
  }
}

t.test('a commit has the changes of all parts, and each part begins and ends once', async (t) => {
  for (const calls of [true, false]) {
    const notes: string[] = []
    const store = storeThat(calls)
    await commitTogether(store, [partOf('a', notes), partOf('b', notes)])
    t.same(
      store.stored.map((changes) => changes.map((change) => 'put' in change && change.put)),
      [['record/a', 'record/b']],
    )
    const begun = ['a prepared', 'b prepared', 'a begun at 7', 'b begun at 7']
    t.same(notes, [...begun, 'a ended: 7', 'b ended: 7'], calls ? 'the driver calls back' : 'it does not')
  }
})

t.test('if the commit fails, each part learns it', async (t) => {
  const notes: string[] = []
  const commit = commitTogether(storeThat(false, new Error('disk full')), [
    partOf('a', notes),
    partOf('b', notes),
  ])
  await t.rejects(commit, { message: 'disk full' })
  t.same(notes.slice(2), ['a ended: failed', 'b ended: failed'])
})

t.test('if a part cannot be prepared, nothing is stored and the others end', async (t) => {
  const notes: string[] = []
  const store = storeThat(true)
  const broken = () => {
    throw new Error('broken')
  }
  await t.rejects(commitTogether(store, [partOf('a', notes), broken, partOf('c', notes)]), {
    message: 'broken',
  })
  t.same(notes, ['a prepared', 'a ended: failed'])
  t.same(store.stored, [])
})

t.test('if a part cannot end, the others end, and the commit tells it', async (t) => {
  for (const failure of [undefined, new Error('disk full')]) {
    const notes: string[] = []
    const broken = () => ({
      changes: [],
      end() {
        throw new Error('broken')
      },
    })
    const slow = () => ({ changes: [], end: () => Promise.reject(new Error('not sent')) })
    const commit = commitTogether(storeThat(true, failure), [broken, slow, partOf('c', notes)])
    await t.rejects(commit, { message: 'broken' })
    t.equal(notes.at(-1), failure ? 'c ended: failed' : 'c ended: 7')
  }
})

t.test('parts are prepared at once, and the commit waits for what they still do at its end', async (t) => {
  const notes: string[] = []
  let finish = () => {}
  const slow = new Promise<void>((resolve) => {
    finish = resolve
  })
  const commit = commitTogether(storeThat(true), [
    () => ({ changes: [], end: () => slow.then(() => void notes.push('sent')) }),
    partOf('b', notes),
  ])
  t.same(notes, ['b prepared', 'b begun at 7'])
  setImmediate(finish)
  await commit
  t.same(notes.slice(2), ['b ended: 7', 'sent'])
})
