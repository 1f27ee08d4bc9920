import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { addUser, openApi } from '../../../bridge-https/api.ts'
import { connect } from '../../../clients.ts'
import { playing } from '../../../events.ts'
import { pushing, startReceiver } from '../../../receiver.ts'
import { type Issued, startTestHub, temporaryDirectory } from '../../../start-hub.ts'
import { onEachStore } from '../../../stores.ts'
import { item, livestreamOf, textOf } from '../../../validator/feeds.ts'

/*
 * An endpoint is away while 100 livestreams change 15 times, as they do in an hour (deliveries.md, "Numbers").
 */

const livestreams = Array.from({ length: 100 }, (_, n) => livestreamOf(n + 1))
const rounds = 15
const hourMs = 3_600_000

onEachStore('after an hour away, all that plays now comes, and nothing that is over', async (t, store) => {
  const home = await temporaryDirectory(t)
  const feed = join(home, 'feed.json')
  await writeFile(feed, textOf(livestreams.map((_, n) => item(n + 1))))
  const receiver = await startReceiver(t, home)
  const env = { ...store, ...pushing(receiver), HUB_FEED: feed, HUB_PUBLISH_RATE: '0' }
  const hub = await startTestHub(t, env, home)
  const api = await openApi(t, hub)
  const institution = livestreams[0]?.institution.id ?? ''
  const { token } = await addUser(hub, api, institution)
  const login = await hub.ask<Issued>('credentials.add', {
    role: 'publisher',
    label: 'studio',
    institutions: [institution],
  })
  const { client } = await connect(t, hub, login)
  const begin = Date.now() - hourMs
  const publish = async (round: number) => {
    const start = new Date(begin + (round * hourMs) / rounds).toISOString()
    for (const livestream of livestreams) {
      const event = playing(livestream, { start, length: 240, playlistItemId: `${livestream.id} ${round}` })
      await client.publishAsync(`inbox/${institution}`, JSON.stringify(event), { qos: 1 })
    }
  }
  receiver.behave(() => 503)
  await publish(0)
  const subscribe = (path: string, fields: object) =>
    api.call('POST', '/subscriptions', {
      token,
      body: {
        type: 'PUBSUB',
        method: 'PUSH',
        url: receiver.url(path),
        contact: 'a@b.example',
        maxAge: 'element',
        ...fields,
      },
    })
  for (const { id } of livestreams) t.equal((await subscribe('/each', { topic: id })).status, 201)
  await subscribe('/all', { topic: livestreams[0]?.id, livestreams: ['*'] })
  await subscribe('/lanes', { topic: livestreams[0]?.id, livestreams: ['*'], ordering: 'livestream' })
  for (let round = 1; round < rounds; round++) await publish(round)
  // Each has failed at least three times, so the endpoint counts as down.
  await hub.until(async () => {
    const queues = await hub.ask<{ failures: number }[]>('queues.list')
    return queues.every(({ failures }) => failures >= 3)
  })

  for (const path of ['/each', '/all', '/lanes']) {
    receiver.received.length = 0
    const acknowledged = () => receiver.received.filter((pushed) => pushed.path === path)
    receiver.behave((pushed) => (pushed.path === path ? 201 : 503))
    await receiver.until(() => acknowledged().length >= livestreams.length)
    const [first, last] = [acknowledged()[0]?.at ?? 0, acknowledged().at(-1)?.at ?? 0]
    t.comment(`${path}: all within ${Math.round(last - first)} ms of the first`)
    const items = acknowledged().map(({ event }) => String(event.playlistItemId))
    t.same(items.sort(), livestreams.map(({ id }) => `${id} ${rounds - 1}`).sort(), path)
  }
  const queues = await hub.ask<{ stale: number }[]>('queues.list')
  const stale = queues.reduce((sum, queue) => sum + queue.stale, 0)
  t.equal(stale, 3 * livestreams.length * (rounds - 2), 'and all others are counted')
})
