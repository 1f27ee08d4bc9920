import { readFileSync } from 'node:fs'
import t from 'tap'
import { type Push, PushRefused, verifyPush } from '../../../client/node.ts'
import { addUser, openApi } from '../../bridge-https/api.ts'
import { institutions, playing, station } from '../../events.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { startTestHub, temporaryDirectory } from '../../start-hub.ts'

const [own = ''] = institutions

t.test('pushes of a hub are verified, also when its key is replaced at once', async (t) => {
  const receiver = await startReceiver(t, await temporaryDirectory(t))
  const hub = await startTestHub(t, pushing(receiver))
  const api = await openApi(t, hub)
  let { token } = await addUser(hub, api, own)
  const url = receiver.url()
  const publish = async (title: string) => {
    const body = playing(station(), { title })
    const answer = await api.call('POST', '/events/de.org.hub.v1.radio.track.playing', { token, body })
    t.equal(answer.status < 300, true, title)
  }
  await publish('makes the topic')
  const created = await api.call('POST', '/subscriptions', {
    token,
    body: { type: 'PUBSUB', method: 'PUSH', url, contact: 'a@b.example', topic: station().id },
  })
  t.equal(created.status, 201)
  const subscriptions = (await api.call('GET', '/subscriptions', { token })).json as never
  const options = {
    hub: `https://localhost:${hub.httpsPort}`,
    url,
    subscriptions,
    ca: readFileSync(hub.caPath, 'utf8'),
  }
  const verified: Push[] = []
  const codes: string[] = []
  let taken = () => {}
  receiver.behave((pushed, response) => {
    verifyPush(pushed, options).then(
      (push) => {
        verified.push(push)
        response.writeHead(201).end()
        taken()
      },
      (error: unknown) => {
        codes.push(error instanceof PushRefused ? error.code : String(error))
        response.writeHead(error instanceof PushRefused ? error.status : 500).end()
      },
    )
    return undefined
  })
  const until = async (count: number) => {
    while (verified.length < count) await new Promise<void>((resolve) => (taken = resolve))
  }

  await publish('before')
  await until(1)
  await hub.ask('keys.rotate', { dropOld: true })
  // The old key is gone, and the log-in with it.
  token = (await addUser(hub, api, own)).token
  await publish('after')
  await until(2)
  t.match(
    verified.map(({ event, subscription }) => ({ title: Object(event).title, subscription })),
    [
      { title: 'before', subscription: created.json.name },
      { title: 'after', subscription: created.json.name },
    ],
  )
  // The keys had been read within the last ten seconds.
  t.strictSame([...new Set(codes)], ['key.unknown'], 'it says that it cannot tell, and the hub comes again')
})
