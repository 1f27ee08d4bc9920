import { join } from 'node:path'
import t from 'tap'
import { openRetained } from '../../broker/retained.ts'
import type { Message } from '../../event/message.ts'
import { openEmbeddedStore } from '../../store/embedded.ts'
import { temporaryDirectory } from '../start-hub.ts'

const now = Date.parse('2026-01-31T12:00:00Z')
const state = (slot: string, fields: { time?: number; expires?: number } = {}): Message => ({
  topic: 'radio/x/control',
  payload: Buffer.from(slot),
  qos: 1,
  retained: { slot, time: now, ...fields },
  queue: { keep: 'every' },
})

async function start(t: Parameters<typeof temporaryDirectory>[0]) {
  const store = await openEmbeddedStore(join(await temporaryDirectory(t), 'store'))
  t.teardown(() => store.close())
  let time = now
  const retained = await openRetained(store, () => time)
  return {
    store,
    retained,
    at: (ms: number) => {
      time = ms
    },
    async publish(message: Message) {
      await store.commit(retained.change(message, time))
      retained.show(message, time)
    },
    shown: () => retained.current('radio/x/control')?.payload.toString(),
  }
}

t.test('of the states of a livestream the newest that is still valid is shown', async (t) => {
  const { publish, shown, at, retained, store } = await start(t)
  await publish(state('traffic', { time: now, expires: now + 1000 }))
  await publish(state('weather', { time: now - 500, expires: now + 5000 }))
  t.equal(shown(), 'traffic', 'a late older one does not replace it')
  at(now + 1000)
  t.equal(shown(), 'weather', 'its time over, the next newest takes its place')
  await retained.sweep()
  t.same((await openRetained(store, () => now + 1000)).topics('#'), ['radio/x/control'])
  at(now + 5000)
  t.equal(shown(), undefined, 'then nothing')
  await retained.sweep()
  t.same(retained.topics('#'), [])
  t.same((await openRetained(store, () => now)).topics('#'), [], 'and nothing is left in the store')
})

t.test('a state far in the future does not hide newer arrivals of other names', async (t) => {
  const { publish, shown } = await start(t)
  await publish(state('wrong clock', { time: now + 3_600_000 }))
  await publish(state('now'))
  t.equal(shown(), 'now')
})

t.test('names without end push out the oldest', async (t) => {
  const { publish, retained, store, at } = await start(t)
  for (let index = 0; index < 150; index++) await publish(state(`name ${index}`, { expires: now + 9e6 }))
  await retained.sweep()
  const stored: string[] = []
  for await (const [key] of store.range('retained/')) stored.push(key)
  t.equal(stored.length, 100)
  t.ok(stored.some((key) => key.endsWith('"name 149"')))
  t.notOk(stored.some((key) => key.endsWith('"name 49"')))
  await publish(state('name 10'))
  at(now + 1)
  await retained.sweep()
  t.equal(retained.current('radio/x/control')?.slot, 'name 10', 'a name that comes back is kept')
})
