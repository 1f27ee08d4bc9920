import type { Test } from 'tap'
import { weekOf } from '../../../event/week.ts'
import { connectPublisher } from '../../clients.ts'
import { institutions, playing, station } from '../../events.ts'
import { startTestHub, type TestHub } from '../../start-hub.ts'
import { onEachStore, onStore } from '../../stores.ts'

/* The counts of weekly reports on whole hubs (open.md §7): over starts, and over nodes that share a store. */

const [own = ''] = institutions
const livestream = station()
const next = 'de.org.hub.v1.radio.track.next'

async function publisherAt(t: Test, hub: TestHub, issuer = hub) {
  return connectPublisher(t, hub, await issuer.publisher([own]), own)
}

async function sumsAt(hub: TestHub) {
  const week = weekOf(Date.now()).name
  const { events, elements, announced, cameTrue, refused } = await hub.ask<Record<string, number>>(
    'report.institution',
    { institution: own, week },
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
