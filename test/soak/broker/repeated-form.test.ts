import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sampleFeedPath } from '../../../config/sample-feed.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { playing, playingTopic, serviceOf, station } from '../../events.ts'
import { startTestHub, type TestHub, temporaryDirectory } from '../../start-hub.ts'
import { onEachStore } from '../../stores.ts'

const livestream = station(0, 0)
const institution = livestream.institution.id
const { type: _type, externalId: _externalId, ...ids } = serviceOf(livestream)
const byId = { ...ids, id: livestream.id }

onEachStore('a repetition is sent as the first was stored, also after the feed changed', async (t, store) => {
  const home = await temporaryDirectory(t)
  const feed = join(home, 'feed.json')
  const text = readFileSync(sampleFeedPath, 'utf8')
  writeFileSync(feed, text)
  const env = { ...store, HUB_FEED: feed }
  const payload = JSON.stringify(playing(livestream, { services: [byId], title: 'Erste Welle' }))
  const other = JSON.stringify(playing(livestream, { services: [byId], title: 'Zweite Welle' }))

  const publishTo = async (hub: TestHub, sent: string) => {
    const publisher = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
    const app = await connect(t, hub, await hub.subscriber('radio/#'))
    await app.client.subscribeAsync(playingTopic(livestream), { qos: 1 })
    const report = await publisher.publish(sent)
    t.match(report, { outcome: 'published' })
    const { payload } = await app.received.until(({ packet }) => !packet.retain)
    await Promise.all([app.client.endAsync(true), publisher.client.endAsync(true)])
    return { id: report.id, payload: payload.toString() }
  }

  const hub = await startTestHub(t, env, home)
  const first = await publishTo(hub, payload)
  t.match(JSON.parse(first.payload), { services: [{ externalId: livestream.externalId }] })

  const changed = `${livestream.externalId}-neu`
  writeFileSync(feed, text.replace(`"${livestream.externalId}"`, `"${changed}"`))
  await hub.ask('feed.refresh')
  const anew = await publishTo(hub, other)
  t.match(
    JSON.parse(anew.payload),
    { services: [{ externalId: changed }] },
    'another event has the new value',
  )
  t.strictSame(await publishTo(hub, payload), first)

  await hub.close()
  const again = await startTestHub(t, env, home)
  t.strictSame(await publishTo(again, payload), first, 'also after a restart')
})
