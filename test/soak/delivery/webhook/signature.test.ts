import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { addUser, openApi } from '../../../bridge-https/api.ts'
import { codeBlock, readPage } from '../../../documentation.ts'
import { institutions, playing, station } from '../../../events.ts'
import { type Pushed, pushing, startReceiver } from '../../../receiver.ts'
import { webhookLibraries } from '../../../standard-webhooks.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'
import { onEachStore, type StoreSettings } from '../../../stores.ts'

/* Pushes that receivers verify with the real libraries for Standard Webhooks (open.md §6). */

t.jobs = 2

const [own = '', foreign = ''] = institutions

async function start(t: Test, store: StoreSettings = {}) {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const hub = await startTestHub(t, { ...store, ...pushing(receiver) }, home)
  const api = await openApi(t, hub)
  const { token } = await addUser(hub, api, own)
  const publish = (title: string) => {
    const body = { ...playing(station()), title }
    return api.call('POST', '/events/de.org.hub.v1.radio.track.playing', { token, body })
  }
  await publish('makes the topic')
  const topic = station().id
  const body = { type: 'PUBSUB', method: 'PUSH', url: receiver.url(), contact: 'a@b.example', topic }
  const { json } = await api.call('POST', '/subscriptions', { token, body })
  const name = String(json.name)
  const path = `/subscriptions/${name}`
  const makeSecret = async () => (await api.call('POST', `${path}/secret`, { token })).json
  /** Publishes an event, and returns the push of it. */
  async function pushed(title: string): Promise<Pushed> {
    await publish(title)
    const isIt = ({ event }: Pushed) => event.title === title
    await receiver.until((received) => received.some(isIt))
    return receiver.received.filter(isIt).at(-1) as Pushed
  }
  return { home, receiver, hub, api, token, name, path, publish, makeSecret, pushed }
}

/** The line of docs/webhooks.md, as it stands there. */
const verify = new Function(
  'Webhook',
  'secret',
  'body',
  'request',
  `${codeBlock(readPage('webhooks.md'), 'js', 'new Webhook(secret)')}\nreturn message`,
)

/** Verifies a push with each library, as the page says. Returns the names of those that refuse it. */
function refusing({ raw, headers }: Pushed, secret: unknown): string[] {
  return webhookLibraries.flatMap(([name, { Webhook }]) => {
    try {
      return verify(Webhook, secret, raw, { headers }).messageId === headers['webhook-id']
        ? []
        : [`${name} differs`]
    } catch {
      return [name]
    }
  })
}

const names = webhookLibraries.map(([name]) => name)

onEachStore('pushes, retries, replays and tests are signed, also during a rotation', async (t, settings) => {
  const { receiver, api, token, name, path, makeSecret, pushed } = await start(t, settings)
  t.notHas(await pushed('unsigned'), { headers: { 'webhook-id': /./ } })
  const first = await makeSecret()
  t.match(first, { secret: /^whsec_/, previousUntil: null })
  let refuses = 1
  receiver.behave(() => (refuses-- > 0 ? 503 : 201))
  const { headers } = await pushed('Grüße, 東京 🎵')
  await receiver.until((received) => received.length === 3)
  const [, refused, retried] = receiver.received
  if (!refused || !retried) throw new Error('nothing was tried again')
  t.same([...refusing(refused, first.secret), ...refusing(retried, first.secret)], [])
  t.equal(headers['webhook-id'], refused.body.message.messageId)
  t.equal(retried.headers['webhook-id'], refused.headers['webhook-id'])
  t.ok(Number(retried.headers['webhook-timestamp']) >= Number(refused.headers['webhook-timestamp']))
  t.match(retried.headers.authorization, /^Bearer ./)
  t.same(refusing({ ...retried, raw: Buffer.from(`${retried.raw} `) }, first.secret), names, 'it was changed')

  const second = await makeSecret()
  t.ok(Date.parse(String(second.previousUntil)) > Date.now() + 23 * 3_600_000)
  const rotated = await pushed('Rotated')
  t.same([...refusing(rotated, first.secret), ...refusing(rotated, second.secret)], [])
  t.same(refusing(rotated, (await makeSecret()).secret), names, 'made afterwards')

  const { json: tested } = await api.call('POST', `${path}/test`, { token })
  t.equal(tested.delivered, true)
  t.same(refusing(receiver.received.at(-1) as Pushed, second.secret), [])
  const since = new Date(Date.now() - 60_000).toISOString()
  const before = receiver.received.length
  await api.call('PUT', '/pubsub', { token, body: { subscription: name, since } })
  await pushed('after the replay')
  t.ok(receiver.received.length > before + 1)
  t.same(
    receiver.received.slice(before).flatMap((one) => refusing(one, first.secret)),
    [],
  )

  t.match(await api.call('DELETE', `${path}/secret`, { token }), { status: 200, json: { valid: true } })
  const { 'webhook-signature': signature, authorization } = (await pushed('unsigned again')).headers
  t.equal(signature, undefined)
  t.match(authorization, /^Bearer ./)
  t.equal((await api.call('DELETE', `${path}/secret`, { token })).status, 200, 'and there is none')
})

onEachStore('a secret is shown by nothing but the answer that made it', async (t, settings) => {
  const { home, hub, api, token, name, path, makeSecret } = await start(t, settings)
  const answer = await api.call('POST', `${path}/secret`, { token })
  t.equal(answer.headers['cache-control'], 'no-store')
  const secrets = [answer.json.secret, (await makeSecret()).secret].map(String)
  const shown = [
    await api.call('GET', '/subscriptions', { token }),
    await api.call('GET', path, { token }),
    await api.call('GET', `${path}/deliveries`, { token }),
    await hub.ask('subscriptions.list', {}),
    await hub.ask('subscriptions.show', { name }),
    await hub.ask('audit', {}),
  ]
  const text = JSON.stringify(shown)
  for (const secret of secrets) t.notOk(text.includes(secret.slice('whsec_'.length)))
  t.match(await hub.ask('subscriptions.show', { name }), { signed: true })
  const audited = JSON.parse(JSON.stringify(await hub.ask('audit', {}))) as {
    action: string
    target: string
  }[]
  t.equal(
    audited.filter((entry) => entry.action === 'subscriptions.make-secret' && entry.target === name).length,
    2,
  )
  t.ok((await readFile(join(home, 'audit.log'), 'utf8').catch(() => '')).includes(secrets[0] ?? '') === false)

  t.match(await hub.ask('subscriptions.remove-secrets', { name }), { removed: true })
  await t.rejects(Promise.resolve(hub.ask('subscriptions.remove-secrets', { name })), /it has no secret/)
  t.match(await hub.ask('subscriptions.show', { name }), { signed: false })
})

t.test('who may not change a subscription makes it no secret', async (t) => {
  const { hub, api, path } = await start(t)
  const stranger = await addUser(hub, api, foreign)
  for (const method of ['POST', 'DELETE'] as const) {
    t.equal((await api.call(method, `${path}/secret`, { token: stranger.token })).status, 404)
    t.equal((await api.call(method, `${path}/secret`, {})).status, 401)
  }
})

t.test('a sixth secret within a day is refused, with the time when to ask again', async (t) => {
  const { api, token, path, makeSecret } = await start(t)
  for (let count = 0; count < 5; count++) t.type((await makeSecret()).secret, 'string')
  const { status, headers } = await api.call('POST', `${path}/secret`, { token })
  t.equal(status, 429)
  t.ok(Number(headers['retry-after']) > 86_000)
})
