import t from 'tap'
import { createLastSeen } from '../../../store/nodes/last-seen.ts'
import type { Store } from '../../../store/store.ts'
import { openStore } from '../../open-store.ts'

const lastAt = '2026-03-01T18:02:00.000Z'

t.test('what is gone is forgotten, also if it went while no node ran', async (t) => {
  const store = await openStore(t)
  const before = await open(store)
  for (const key of ['a', 'b', 'c']) before.note(key, { lastAt })
  await before.close()
  const notes = await open(store)
  notes.keep((key) => key !== 'a')
  notes.forget('b')
  notes.forget('never seen')
  t.same(['a', 'b', 'c'].map(notes.get), [undefined, undefined, { lastAt }])
  t.same(notes.all(), [{ lastAt }])
  await notes.close()
  t.same((await open(store)).all(), [{ lastAt }])
})

function open(store: Store) {
  const onStoreFailure = (error: unknown) => t.fail(String(error))
  return createLastSeen<{ lastAt: string }>({ store, family: { prefix: 'seen/' }, since: '', onStoreFailure })
}
