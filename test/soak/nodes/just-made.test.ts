import t from 'tap'
import { password as chosen, openClient } from '../../bridge-https/api.ts'
import { connect, connectPublisher } from '../../clients.ts'
import { institutions, playing, station } from '../../events.ts'
import { startFleet } from '../../nodes/fleet.ts'
import { pushing, startReceiver } from '../../receiver.ts'
import { withoutRedis } from '../../redis-server.ts'
import { type Issued, temporaryDirectory } from '../../start-hub.ts'
import { startNetwork } from '../../store/slow-network.ts'

/*
 * Node b makes something and answers. Node a hears of it late, because data between it and Redis takes a while. A
 * client that goes straight from b to a must not notice.
 */

const [institution = ''] = institutions
const email = 'kim@radio.example'

t.test('what one node has just made, the other one admits', { skip: withoutRedis }, async (t) => {
  const receiver = await startReceiver(t, await temporaryDirectory(t))
  const { a, b } = await startFleet(t, 2, {
    env: pushing(receiver),
    through: async (index, port) =>
      index === 0 ? (await startNetwork(t, port, { delayMs: 80 })).url : `redis://127.0.0.1:${port}`,
  })
  const here = openClient(t, a)
  const there = openClient(t, b)

  await t.test('the token to choose a password, the password, and the token of the log-in', async (t) => {
    const permissions = ['publish', 'subscribe']
    const { resetToken: token } = await b.ask<{ resetToken: string }>('users.add', {
      email,
      institution,
      permissions,
    })
    t.match(await here('POST', '/auth/reset', { body: { token, password: chosen } }), { status: 200 })
    const again = await b.ask<{ resetToken: string }>('users.reset-password', { email })
    const password = 'another horse battery'
    await there('POST', '/auth/reset', { body: { token: again.resetToken, password } })
    t.match(await here('POST', '/auth/login', { body: { email, password } }), { status: 200 })
    const last = await b.ask<{ resetToken: string }>('users.reset-password', { email })
    await there('POST', '/auth/reset', { body: { token: last.resetToken, password: chosen } })
    const { json } = await there('POST', '/auth/login', { body: { email, password: chosen } })
    t.match(await here('GET', '/livestreams', { token: String(json.token) }), { status: 200 })
  })

  await t.test('a topic, and a subscription to it', async (t) => {
    const studio = await connectPublisher(t, b, await b.publisher([institution]), institution)
    const { json: login } = await there('POST', '/auth/login', { body: { email, password: chosen } })
    const token = String(login.token)
    const livestream = station(0, 0)
    const contact = 'a@b.example'
    const body = { type: 'PUBSUB', method: 'PUSH', contact, topic: livestream.id, url: receiver.url() }
    await studio.publish(playing(livestream))
    t.match(await here('POST', '/subscriptions', { token, body }), { status: 201 })
    const { json: made } = await there('POST', '/subscriptions', { token, body })
    t.match(await here('GET', `/subscriptions/${made.name}`, { token }), { status: 200 })
  })

  await t.test('a credential over MQTT', async (t) => {
    for (const login of [await b.subscriber('radio/#'), await b.publisher([institution])]) {
      const { client } = await connect(t, a, login)
      t.equal(client.connected, true)
    }
  })

  await t.test('a reader over HTTPS', async (t) => {
    const filters = ['radio/#']
    const reader = await b.ask<Issued>('credentials.add', { role: 'reader', label: 'app', filters })
    const authorization = `Basic ${Buffer.from(`${reader.username}:${reader.password}`).toString('base64')}`
    t.match(await here('GET', '/now', { headers: { authorization } }), { status: 200 })
  })
})
