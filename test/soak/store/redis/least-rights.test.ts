import t from 'tap'
import { addUser, openApi } from '../../../bridge-https/api.ts'
import { connect, connectPublisher } from '../../../clients.ts'
import { codeBlock, readPage } from '../../../documentation.ts'
import { institutions, playing, station } from '../../../events.ts'
import { pushing, startReceiver, webhookBody } from '../../../receiver.ts'
import { startRedis, withoutRedis } from '../../../redis-server.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'

const [institution = ''] = institutions

t.test('the user of the docs may do all that a node does', { skip: withoutRedis }, async (t) => {
  const line = codeBlock(readPage('operators.md'), 'text', 'user hub on').replace('PASSWORD', 'geheim')
  const redis = await startRedis(t, [line.replace('{hub:prod}', '{hub:test}')])
  const receiver = await startReceiver(t, await temporaryDirectory(t))
  const url = redis.url.replace('redis://', 'redis://hub:geheim@')
  const env = { ...pushing(receiver), HUB_REDIS_URL: url, HUB_PUBLIC_URL: 'https://hub.example' }
  const hub = await startTestHub(t, env)

  const studio = await connectPublisher(t, hub, await hub.publisher([institution]), institution)
  const login = await hub.subscriber('radio/#')
  const away = await connect(t, hub, login, { clientId: 'away', clean: false })
  await away.client.subscribeAsync('radio/#', { qos: 2 })
  await away.client.endAsync()
  await studio.publish(playing(station(0, 0)))
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, institution, { permissions: ['subscribe'] })
  const body = webhookBody(receiver.url(), station(0, 0).id)
  t.match(await api.call('POST', '/subscriptions', { token, body }), { status: 201 })
  await studio.publish(playing(station(0, 0)))
  await receiver.until((received) => received.length === 1)
  const back = await connect(t, hub, login, { clientId: 'away', clean: false })
  await back.received.count(1)
  await hub.ask('credentials.revoke', { username: login.username })

  t.strictSame(await redis.client().call('ACL', 'LOG'), [], 'nothing was denied')
})
