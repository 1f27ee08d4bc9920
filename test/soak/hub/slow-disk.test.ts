import t, { type Test } from 'tap'
import { onSlowDisk } from '../../../bench/slow-disk.ts'
import { connect } from '../../clients.ts'
import { playing, station } from '../../events.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { issue, temporaryDirectory } from '../../start-hub.ts'

/* Who has nothing stored does not wait for the disk, not even where it still writes earlier events. */

const livestream = station(0, 0)
const institution = livestream.institution.id

t.test('events reach clean sessions while the first of them is still being written', async (t) => {
  const { hub, publish, subscribe } = await onDisk(t, 700)
  const clean = await subscribe('clean')
  const kept = await subscribe('kept', { clean: false })
  const stored: string[] = []
  const items: string[] = []
  // A busy machine may take longer than the disk, but not each time.
  let areAhead = false
  for (let round = 0; round < 10 && !areAhead; round++) {
    const before = items.length
    const acknowledgements: Promise<void>[] = []
    for (let nth = 0; nth < 5; nth++) {
      const item = `${items.length}`
      items.push(item)
      acknowledgements.push(publish(item).then(() => void stored.push(item)))
      await clean.received.until(({ json }) => json.playlistItemId === item)
    }
    areAhead = stored.length === before && itemsOf(kept).length === before
    const newest = items.at(-1)
    const late = await subscribe('late')
    await late.received.until(({ json }) => json.playlistItemId === newest)
    await Promise.all(acknowledgements)
    await kept.received.until(({ json }) => json.playlistItemId === newest)
  }
  t.ok(areAhead, 'all are there before the first is acknowledged, and before a persistent session gets it')
  t.strictSame(stored, items, 'acknowledged in order')
  for (const each of [clean, kept]) t.strictSame(itemsOf(each), items, 'in order, and once')

  const [last, next] = [items.at(-1), `${items.length}`]
  const over = publish(next)
  await clean.received.until(({ json }) => json.playlistItemId === next)
  over.catch(() => {})
  await hub.stop('SIGKILL')
  const after = await spawnHub(t, hub.home)
  const again = await connect(t, after, hub.subscriber)
  await again.client.subscribeAsync('radio/#', { qos: 1 })
  const { json } = await again.received.until(() => true)
  t.ok(
    [last, next].includes(String(json.playlistItemId)),
    'after a crash, the last acknowledged event is there',
  )
})

function itemsOf({ received }: Awaited<ReturnType<typeof connect>>): unknown[] {
  return received.all.map(({ json }) => json.playlistItemId)
}

/** A node whose syncs take `ms` milliseconds longer, with a publisher. */
async function onDisk(t: Test, ms: number) {
  const home = await temporaryDirectory(t)
  const hub = await spawnHub(t, home, { HUB_PUBLISH_RATE: '0' }, { command: onSlowDisk(ms) })
  const subscriber = await issue(hub, { role: 'subscriber', filters: ['radio/#'] })
  const { client } = await connect(
    t,
    hub,
    await issue(hub, { role: 'publisher', institutions: [institution] }),
  )
  return {
    hub: { ...hub, home, subscriber },
    async publish(playlistItemId: string): Promise<void> {
      const event = playing(livestream, { playlistItemId })
      await client.publishAsync(`inbox/${institution}`, JSON.stringify(event), { qos: 1 })
    },
    async subscribe(clientId: string, { clean = true } = {}) {
      const app = await connect(t, hub, subscriber, { clientId, clean })
      await app.client.subscribeAsync('radio/#', { qos: 1 })
      return app
    },
  }
}
