import { join } from 'node:path'
import t, { type Test } from 'tap'
import { migrate } from '../../migrate/migrate.ts'
import { formatKey, presentFormat } from '../../store/stored-value.ts'
import { openStore } from '../open-store.ts'
import { startTestHub, temporaryDirectory } from '../start-hub.ts'
import { onStore, openStoreOf } from '../stores.ts'

/* That everything in such a store is delivered: `test/soak/delivery/webhook/many-webhooks.test.ts`. */

async function openFormat2(t: Test) {
  const store = await openStore(t)
  await store.commit([{ put: formatKey, value: '2' }])
  return { store, format: async () => Number(await store.get(formatKey)) }
}

t.test('a store of format 2 gets the present format', async (t) => {
  const { store, format } = await openFormat2(t)
  await store.commit([
    { put: 'session/player', value: JSON.stringify({ clean: false }) },
    { put: 'session/page', value: JSON.stringify({ clean: true }) },
  ])
  t.equal(await migrate(store, async () => []), false, 'it is no new store')
  t.equal(await format(), presentFormat)
  t.ok(await store.get('session/player'))
  t.notOk(await store.get('session/page'), 'a clean session is no longer among them')
})

t.test('it is left as it is while other nodes use it', async (t) => {
  const { store, format } = await openFormat2(t)
  const message = /^nodes of a former release use the store \(a:1, b:2\): stop all of them/
  await t.rejects(
    migrate(store, async () => ['a:1', 'b:2']),
    { message },
  )
  t.equal(await format(), 2)
})

t.test('two nodes of this release may start on it at once', async (t) => {
  const { store, format } = await openFormat2(t)
  // The other one takes the store over, and joins after that.
  const others = async () => {
    await store.commit([{ put: formatKey, value: String(presentFormat) }])
    return ['other:1']
  }
  t.equal(await migrate(store, others), false)
  t.equal(await format(), presentFormat)
})

onStore('redis', 'a node does not start beside those of a former release', async (t, settings) => {
  const home = await temporaryDirectory(t)
  const store = await openStoreOf(settings, join(home, 'data'))
  const member = { node: 'x', name: 'host-a:1', number: 1 }
  await store.commit([
    { put: formatKey, value: '2' },
    { put: 'member/00', value: JSON.stringify(member) },
  ])
  await t.rejects(startTestHub(t, settings, home), {
    message: /^nodes of a former release use the store \(host-a:1\): stop all of them/,
  })
  t.equal(String(await store.get(formatKey)), '2')
  await store.commit([{ del: 'member/00' }])
  await startTestHub(t, settings, home)
  t.equal(String(await store.get(formatKey)), String(presentFormat))
  await store.close()
})
