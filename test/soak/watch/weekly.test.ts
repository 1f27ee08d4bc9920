import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { sampleFeedPath } from '../../../config/sample-feed.ts'
import { weekOf } from '../../../event/week.ts'
import type { Livestream } from '../../../validator/feed/feed.ts'
import { connectPublisher } from '../../clients.ts'
import { institutions, playing, station } from '../../events.ts'
import { startTestHub, type TestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore, onStore } from '../../stores.ts'

/* The counts of weekly reports on whole hubs (open.md §7): over starts, and over nodes that share a store. */

const [own = '', other = ''] = institutions
const livestream = station()
const next = 'de.org.hub.v1.radio.track.next'

async function publisherAt(t: Test, hub: TestHub, issuer = hub) {
  return connectPublisher(t, hub, await issuer.publisher([own]), own)
}

async function sumsAt(hub: TestHub, institution = own) {
  const week = weekOf(Date.now()).name
  const { events, elements, announced, cameTrue, refused } = await hub.ask<Record<string, number>>(
    'report.institution',
    { institution, week },
  )
  return { events, elements, announced, cameTrue, refused }
}

onEachStore('counts outlive a start', async (t, store) => {
  const one = await startTestHub(t, store)
  const studio = await publisherAt(t, one)
  await studio.publish(playing(livestream, { playlistItemId: 'a' }))
  await studio.publish(playing(livestream, { playlistItemId: 'b', length: 0 }))
  await one.close()
  const two = await startTestHub(t, store, one.home)
  const again = await publisherAt(t, two)
  await again.publish(playing(livestream, { playlistItemId: 'c' }))
  t.same(await sumsAt(two), { events: 2, elements: 2, announced: 0, cameTrue: 0, refused: 1 })
})

onStore('embedded', 'of a livestream that changes hands, each institution has its own', async (t, store) => {
  const home = await temporaryDirectory(t)
  const feed = join(home, 'feed.json')
  await copyFile(sampleFeedPath, feed)
  const hub = await startTestHub(t, { ...store, HUB_FEED: feed }, home)
  const before = await publisherAt(t, hub)
  await before.publish(playing(livestream, { playlistItemId: 'a' }))
  await before.publish(playing(livestream, { playlistItemId: 'b', event: next }))

  const { publisher, institution } = station(1)
  const { items }: { items: Livestream[] } = JSON.parse(await readFile(feed, 'utf8'))
  const listed = items.find(({ id }) => id === station(1).id)
  const given = items.map((one) =>
    one.id === livestream.id ? { ...one, publisher: listed?.publisher } : one,
  )
  await writeFile(feed, JSON.stringify({ items: given }))
  await hub.ask('feed.refresh', { force: true })
  const after = await connectPublisher(t, hub, await hub.publisher([other]), other)
  const taken = { ...livestream, publisher, institution }
  await after.publish(playing(taken, { playlistItemId: 'b' }))
  const counted = { elements: 1, announced: 0, cameTrue: 0, refused: 0 }
  t.same(await sumsAt(hub, other), { events: 1, ...counted })
  t.same(await sumsAt(hub), { events: 2, ...counted })
})

onStore('redis', 'an event counts once over all nodes, whichever it came to', async (t, store) => {
  const one = await startTestHub(t, store)
  const two = await startTestHub(t, store)
  const [first, second] = [await publisherAt(t, one), await publisherAt(t, two, one)]
  const event = (id: string, fields: object = {}) => playing(livestream, { playlistItemId: id, ...fields })
  await first.publish(event('a'))
  await second.publish(event('b', { event: next }))
  await first.publish(event('b'))
  await second.publish(event('c', { event: next }))
  const repeated = event('d')
  await second.publish(repeated)
  await first.publish(event('e', { length: 0 }))
  await second.publish(event('f', { length: 0 }))
  await second.publish(repeated)
  const expected = { events: 5, elements: 3, announced: 2, cameTrue: 1, refused: 2 }
  const isCounted = async (hub: TestHub) => JSON.stringify(await sumsAt(hub)) === JSON.stringify(expected)
  // Whoever leads writes what it has counted when it is asked.
  for (const hub of [one, two]) await hub.until(async () => (await isCounted(one)) && isCounted(hub))
  await one.close()
  await second.publish(event('g'))
  await two.until(async () => (await sumsAt(two)).events === 6)
  t.match(await sumsAt(two), { events: 6, refused: 2 })
})
