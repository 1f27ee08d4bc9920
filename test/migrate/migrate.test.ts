import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { migrate } from '../../migrate/migrate.ts'
import { formatKey, presentFormat } from '../../store/stored-value.ts'
import { openStore } from '../open-store.ts'
import { startTestHub, temporaryDirectory } from '../start-hub.ts'
import { onEachStore, openStoreOf } from '../stores.ts'

onEachStore('a store that a newer release has written is refused', async (t, settings) => {
  const home = await temporaryDirectory(t)
  await mkdir(join(home, 'data'))
  const store = await openStoreOf(settings, join(home, 'data'))
  const newer = String(presentFormat + 1)
  await store.commit([{ put: formatKey, value: newer }])
  await store.close()
  await t.rejects(startTestHub(t, settings, home), {
    message: new RegExp(`a newer release has written the store: it has format ${newer}`),
  })
})

const alone = async () => []

t.test('feeds that 3.0.0-beta.2 has copied are removed', async (t) => {
  const store = await openStore(t)
  t.equal(await migrate(store, alone), true, 'a new store')
  const former = Array.from({ length: 2_500 }, (_, number) => `feed/former/urn:${number}`)
  const present = ['feed/checked/a', 'feed/dropped', 'feed/good/a']
  const keys = [...present, ...former, 'feed/last', 'feed/confirmed']
  await store.commit(keys.map((put) => ({ put, value: '{}' })))
  t.equal(await migrate(store, alone), false, 'no new one any more')
  const left: string[] = []
  for await (const [key] of store.range('feed/')) left.push(key)
  t.same(left, present)
})
