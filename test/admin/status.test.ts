import t from 'tap'
import { createStoreCheck } from '../../admin/status.ts'
import { createMemoryStore } from '../delivery/memory-store.ts'

const sound = {
  unreachable: () => undefined,
  unsafeSettings: () => 0,
  replaced: () => undefined,
  accept: async () => undefined,
}

t.test('the store is asked anew every few seconds, however the clock is set', async (t) => {
  const memory = createMemoryStore()
  const time = { now: 0 }
  const check = createStoreCheck({ store: memory.store, state: sound, now: () => time.now })
  t.match(await check(1_000), { ok: true, problem: null })
  memory.judge(() => 'refused')
  const { now } = Date
  t.teardown(() => {
    Date.now = now
  })
  Date.now = () => now() - 3_600_000
  time.now += 2_999
  t.match(await check(1_000), { ok: true }, 'not yet: many may ask')
  time.now += 1
  t.match(await check(1_000), { ok: false, problem: 'disk full', isReplaced: false })
  const replaced = { at: '2026-03-01T12:00:00Z', movedTo: '/data/store.damaged', reason: 'corrupt' }
  const again = createStoreCheck({ store: memory.store, state: { ...sound, replaced: () => replaced } })
  t.match(await again(1_000), { ok: false, problem: 'disk full', isReplaced: true })
})

t.test('the problem of the store is told with its cause', async (t) => {
  const cause = new Error('IO error: /data/store/000012.log: No space left on device')
  const commit = () => Promise.reject(new Error('Database failed to open', { cause }))
  const check = createStoreCheck({ store: { ...createMemoryStore().store, commit }, state: sound })
  const { problem } = await check(1_000)
  t.equal(problem, 'Database failed to open: IO error: /data/store/000012.log: No space left on device')
})
