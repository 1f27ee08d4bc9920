import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect, connectPublisher } from '../../clients.ts'
import { playing, serviceOf, station } from '../../events.ts'
import { rawClient } from '../../raw-client.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { issue, startTestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'

const livestream = station(0, 0)
const institution = livestream.institution.id
const livestreams = 10_000
const perEvent = 20

onEachStore('10,000 retained livestreams reach new subscribers, and delay nobody', async (t, store) => {
  const home = await temporaryDirectory(t)
  const feed = join(home, 'feed.json')
  const items = Array.from({ length: livestreams }, (_, index) => feedItem(index))
  await writeFile(feed, JSON.stringify({ items }))
  const hub = await startTestHub(t, { ...store, HUB_FEED: feed, HUB_PUBLISH_RATE: '0' }, home)
  const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  for (let at = 0; at < livestreams; at += perEvent) {
    const services = items.slice(at, at + perEvent).map(serviceIn)
    const report = await publisher.publish(playing(livestream, { title: 'before', services }))
    t.match(report, { outcome: 'published', errors: [], statuses: { published: perEvent } })
  }
  const login = await hub.subscriber('radio/#')
  const watcher = await connect(t, hub, login, { clientId: 'watcher' })
  await watcher.client.subscribeAsync(`radio/${items[0]?.id}/control`, { qos: 1 })
  await watcher.client.subscribeAsync(`radio/${items[0]?.id}/track/playing`, { qos: 1 })
  const deliveries = async () => {
    const { counters } = await hub.ask<{ counters: Record<string, number> }>('status')
    return counters.hub_deliveries_total ?? 0
  }
  for (const [clean, qos] of [
    [true, 0],
    [true, 1],
    [false, 1],
  ] as const) {
    const newcomer = await rawClient(t, hub.mqttPort, await readFile(hub.caPath))
    const { username, password } = login
    const clientId = `newcomer ${clean} ${qos}`
    await newcomer.connect({ username, password: Buffer.from(password), clientId, clean })
    const seen = watcher.received.all.length
    const before = await deliveries()
    newcomer.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'radio/#', qos }] })
    await newcomer.next('publish')
    // The hub has to wait for this client, however long the store takes for the live event.
    newcomer.socket.pause()
    const services = items.slice(0, 1).map(serviceIn)
    const live = publisher.publish(playing(livestream, { title: 'live', services }))
    await watcher.received.until(({ json }) => json.title === 'live', seen)
    const sent = (await deliveries()) - before
    t.ok(sent > 0 && sent < livestreams, `a live event does not wait for the retained ones: ${sent} sent`)
    await live
    newcomer.socket.resume()
    const topics = new Set<string>()
    let hasLive = false
    for (let next = 0; topics.size < livestreams || !hasLive; next++) {
      const packet = await newcomer.at(next)
      if (packet.cmd !== 'publish') continue
      const { messageId } = packet
      if (messageId !== undefined) newcomer.send({ cmd: 'puback', messageId })
      if (packet.retain) topics.add(packet.topic)
      else hasLive ||= JSON.parse(String(packet.payload)).title === 'live'
    }
    t.equal(topics.size, livestreams, `clean ${clean}, QoS ${qos}`)
    newcomer.send({ cmd: 'disconnect' })
    await newcomer.closed()
  }
  const queued = async () => {
    const session = await hub.ask<{ queued: number }>('sessions.show', { clientId: 'newcomer false 1' })
    return session.queued
  }
  await hub.until(async () => (await queued()) === 0)
  t.pass('nothing of it is left in the session')
})

onEachStore('1,000 clients that come back at once are all served', async (t, store) => {
  const home = await temporaryDirectory(t)
  const before = await spawnHub(t, home, store)
  const login = await issue(before, { role: 'subscriber', label: 's', filters: ['radio/#'] })
  const publisherLogin = await issue(before, { role: 'publisher', label: 'p', institutions: [institution] })
  const clientIds = Array.from({ length: 1000 }, (_, index) => `car-${index}`)
  const options = { clean: false, connectTimeout: 60_000 }
  for (let at = 0; at < clientIds.length; at += 100) {
    await Promise.all(
      clientIds.slice(at, at + 100).map(async (clientId) => {
        const { client } = await connect(t, before, login, { ...options, clientId })
        await client.subscribeAsync('radio/#', { qos: 1 })
      }),
    )
  }
  await before.stop('SIGKILL')
  const hub = await spawnHub(t, home, store)
  const apps = await Promise.all(
    clientIds.map((clientId) => connect(t, hub, login, { ...options, clientId })),
  )
  t.equal(apps.filter(({ client }) => client.connected).length, clientIds.length)
  const publisher = await connectPublisher(t, hub, publisherLogin, institution)
  await publisher.publish(playing(livestream, { title: 'welcome back' }))
  await Promise.all(apps.map(({ received }) => received.until(({ json }) => json.title === 'welcome back')))
  await Promise.all(apps.map(({ client }) => client.endAsync(true)))
})

function serviceIn({ externalId }: ReturnType<typeof feedItem>): Record<string, unknown> {
  return { ...serviceOf(livestream), externalId }
}

function feedItem(index: number) {
  const { type, publisher } = livestream
  const number = index.toString(16).padStart(16, '0')
  return {
    id: `urn:org:permanent-livestream:${number}`,
    type,
    externalId: `crid://crowd.example/${number}`,
    title: `Crowd ${index}`,
    publisher: { ...publisher, institution: livestream.institution },
  }
}
