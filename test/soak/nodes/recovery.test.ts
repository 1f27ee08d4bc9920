import { join } from 'node:path'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { institutions, playing, station } from '../../events.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { onRedis } from '../../redis-server.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'

/*
 * The queues of an endpoint are worked off by different nodes. When one node sees that it answers again, the others
 * need not wait for the end of their pauses (deliveries.md, "Worth").
 */
const [own = ''] = institutions
const livestream = station()
const webhooks = 12
/** A pause that is long enough to see that it was not waited for, milliseconds. */
const longPauseMs = 6_000

interface Row {
  name: string
  nextTry: string | null
}

onRedis('what one node sees of an endpoint ends the pauses of all', async (t, redis) => {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  receiver.behave(() => 503)
  const shared = { HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' }
  const open = (name: string) => startTestHub(t, { ...pushing(receiver), ...shared }, join(home, name))
  const [a, b] = [await open('a'), await open('b')]
  const api = await openApi(t, a)
  const { token } = await addUser(a, api, own)
  const publish = (title: string) =>
    api.call('POST', '/events/de.org.hub.v1.radio.track.playing', {
      token,
      body: playing(livestream, { title }),
    })
  await publish('makes the topic')
  const names: string[] = []
  for (let nth = 0; nth < webhooks; nth++) {
    const body = {
      type: 'PUBSUB',
      method: 'PUSH',
      contact: 'a@b.example',
      topic: livestream.id,
      maxAge: 'element',
      url: receiver.url(`/${nth}`),
    }
    names.push(String((await api.call('POST', '/subscriptions', { token, body })).json.name))
  }
  await publish('One')
  let due = new Map<string, number>()
  await a.until(async () => {
    const rows = await a.ask<Row[]>('queues.list')
    due = new Map(rows.map(({ name, nextTry }) => [name, Date.parse(nextTry ?? '')]))
    return names.every((name) => (due.get(name) ?? 0) > Date.now() + longPauseMs)
  })

  const [first = ''] = names
  receiver.behave(() => 201)
  const came = () => receiver.received.filter(({ event }) => event.title === 'One').length
  const before = came()
  await a.ask('subscriptions.test', { name: first })
  await receiver.until(() => came() === before + webhooks)
  for (const name of names) t.ok((due.get(name) ?? 0) > Date.now(), 'before the end of its pause')
  await b.close()
})
