import { writeFile } from 'node:fs/promises'
import { closed, connect } from '../../clients.ts'
import { playing, playingTopic, station } from '../../events.ts'
import { clockOf } from '../../moving-clock.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { askNode, issue, startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore, openStoreOf, type StoreSettings } from '../../stores.ts'

const [livestream, other] = [station(0, 0), station(0, 1)]
const institution = livestream.institution.id

const willOf = (title: string, of = livestream) => ({
  topic: `inbox/${institution}`,
  payload: Buffer.from(JSON.stringify(playing(of, { playlistItemId: title }))),
  qos: 1 as const,
  retain: false,
})

async function storedWills(store: StoreSettings, home: string): Promise<string[]> {
  const opened = await openStoreOf(store, `${home}/data`)
  const keys: string[] = []
  for await (const [key] of opened.range('will/')) keys.push(key)
  await opened.close()
  return keys
}

onEachStore('the will of a credential that ended while its node was down is void', async (t, store) => {
  const home = await temporaryDirectory(t)
  const first = await spawnHub(t, home, store)
  const publisher = { role: 'publisher', institutions: [institution] }
  const [ends, stays] = [await issue(first, publisher), await issue(first, publisher)]
  await connect(t, first, ends, { clientId: 'ends', will: willOf('void', other) })
  await connect(t, first, stays, { clientId: 'stays', will: willOf('valid') })
  const { username } = ends
  await askNode(first.adminSocket, 'credentials.rotate', { username, revokeAfter: 3_600 })
  await first.stop('SIGKILL')

  const clock = `${home}/clock`
  await writeFile(clock, '3600000')
  const hub = await spawnHub(t, home, { ...store, NODE_OPTIONS: clockOf(clock) })
  const retained = await askNode<{ topic: string }[]>(hub.adminSocket, 'retained.list', {})
  t.same(
    retained.map(({ topic }) => topic),
    [playingTopic(livestream)],
  )
  await hub.stop('SIGTERM')
  t.same(await storedWills(store, home), [])
})

onEachStore(
  'wills wait for the publish rate, and the end of the hub does not wait for them',
  async (t, store) => {
    const home = await temporaryDirectory(t)
    const rate = 5
    const env = { ...store, HUB_PUBLISH_RATE: `${rate}` }
    const hub = await startTestHub(t, env, home)
    const login = await hub.publisher([institution])
    const other = await hub.publisher([institution])
    const watch = async (at: typeof hub) => {
      const watcher = await connect(t, at, other, { clientId: 'watcher', clean: false })
      await watcher.client.subscribeAsync(`feedback/${institution}`, { qos: 1 })
      return watcher
    }
    const watcher = await watch(hub)
    const cut = async (at: typeof hub, from: number, count: number) => {
      const clients = await Promise.all(
        Array.from({ length: count }, (_, index) =>
          connect(t, at, login, { clientId: `${from + index}`, will: willOf(`${from + index}`) }),
        ),
      )
      const gone = clients.map(({ client }) => closed(client))
      for (const { client } of clients) client.stream.destroy()
      await Promise.all(gone)
    }
    const before = performance.now()
    await cut(hub, 0, 20)
    await watcher.received.count(20)
    // A burst of twice the rate need not wait.
    t.ok(performance.now() - before >= (1000 * (20 - 2 * rate)) / rate - 100, 'all in good time')

    // So many that some still wait at the end of the hub, even after a pause of the machine.
    await cut(hub, 20, 40)
    await hub.close()
    t.not((await storedWills(store, home)).length, 0, 'the next start has the rest')
    const again = await startTestHub(t, env, home)
    const later = await watch(again)
    const reports = () => [...watcher.received.all, ...later.received.all]
    await again.until(async () => new Set(reports().map(({ json }) => json.playlistItemId)).size === 60)
    await again.close()
    t.same(await storedWills(store, home), [])
  },
)
