import { join } from 'node:path'
import type { Test } from 'tap'
import { addUser, openApi } from '../../../bridge-https/api.ts'
import { startMailServer } from '../../../bridge-https/users/mail-server.ts'
import { writeConfig } from '../../../bridge-https/users/write-config.ts'
import { institutions, playing, station } from '../../../events.ts'
import { pushing, startReceiver } from '../../../receiver.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'
import { onEachStore, openStoreOf, type StoreSettings } from '../../../stores.ts'

/*
 * A webhook answers 410: what waits for it waits, until it answers something else or for an hour nothing else.
 */
const [own = ''] = institutions
const playingUrl = '/events/de.org.hub.v1.radio.track.playing'

async function start(t: Test, store: StoreSettings) {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const mail = await startMailServer(t)
  const smtp = { host: '127.0.0.1', port: mail.port, from: 'hub@hub.example' }
  const env = {
    ...{ ...store, ...pushing(receiver), HUB_CONFIG: await writeConfig(t, { smtp }) },
    HUB_PUBLIC_URL: 'https://hub.example', // so that tokens hold over a restart
  }
  const open = async () => {
    const hub = await startTestHub(t, env, home)
    return { hub, api: await openApi(t, hub) }
  }
  let { hub, api } = await open()
  const { token } = await addUser(hub, api, own)
  const publish = async (title: string) =>
    void (await api.call('POST', playingUrl, { token, body: { ...playing(station()), title } }))
  await publish('makes the topic')
  const url = receiver.url('/hook?token=secret')
  const { json } = await api.call('POST', '/subscriptions', {
    ...{ token, body: { type: 'PUBSUB', method: 'PUSH', url, contact: 'a@b.example', topic: station().id } },
  })
  const name = String(json.name)
  const shown = async () => (await api.call('GET', `/subscriptions/${name}`, { token })).json

  return {
    ...{ home, receiver, mail, token, publish, name, json, shown },
    call: (method: string, path: string, body?: object) => api.call(method, path, { token, body }),
    until: async (holds: (subscription: Record<string, unknown>) => boolean) =>
      hub.until(async () => holds(await shown())),
    queue: async () => {
      const queues = await hub.ask<{ name: string; state: string; pending: number }[]>('queues.list')
      return queues.find((queue) => queue.name === name)
    },
    /** Stops the hub, changes what it has stored of the webhook, and starts it again. */
    async restart(change: (standing: Record<string, unknown>) => object = (same) => same): Promise<void> {
      await hub.close()
      const opened = await openStoreOf(store, join(home, 'data'))
      const key = `push-standing/${encodeURIComponent(name)}`
      const stored = await opened.get(key)
      if (stored) await opened.commit([{ put: key, value: JSON.stringify(change(JSON.parse(`${stored}`))) }])
      await opened.close()
      ;({ hub, api } = await open())
    },
  }
}

/** As after nearly an hour in which it answered 410 and nothing else. */
const nearlyAnHour = (standing: Record<string, unknown>) => ({
  ...standing,
  gone: { at: Date.now(), ms: 3_599_999 },
})

const titles = (received: readonly { event: Record<string, unknown> }[]) =>
  received.map(({ event }) => String(event.title))

onEachStore('410 is tried again like any failure', async (t, store) => {
  const { receiver, json, shown, until, publish, queue } = await start(t, store)
  t.match(json, { state: 'active', reason: null })
  t.same(await shown(), json)
  receiver.behave(() => 410)
  await publish('One')
  await until(({ state }) => state === 'retrying')
  const retrying = await shown()
  t.match(retrying, { state: 'retrying', reason: 'answered 410' })
  t.ok(Date.parse(String(retrying.since)) >= Date.parse(String(json.since)))
  await publish('Two')
  await receiver.until((received) => received.length === 2)
  t.same(await shown(), retrying, 'since the first of a row')
  receiver.behave(() => 201)
  await receiver.until((received) => titles(received).includes('Two'))
  t.same(titles(receiver.received), ['One', 'One', 'One', 'Two'])
  await until(({ state }) => state === 'active')
  t.match(await shown(), { state: 'active', reason: null })
  t.match(await queue(), { state: 'idle', pending: 0, deadLetters: 0 })
})

onEachStore('after an hour of 410 it is disabled, collects, and sends all in order', async (t, store) => {
  const one = await start(t, store)
  const { receiver, mail, publish, shown, until, call, name } = one
  receiver.behave(() => 410)
  await publish('One')
  await until(({ state }) => state === 'retrying')
  await one.restart(nearlyAnHour)
  await until(({ state }) => state === 'disabled')
  const disabled = await shown()
  t.match(disabled, { reason: 'answered 410' })
  t.match((await call('GET', '/subscriptions')).json, [{ state: 'disabled', since: disabled.since }])
  t.match((await one.queue())?.state, 'disabled')
  const { to, text } = await mail.next()
  t.same(to, ['a@b.example'])
  t.match(text, name)
  t.notMatch(text, 'secret')

  const tried = receiver.received.length
  await publish('Two')
  t.match(await one.queue(), { pending: 2, deadLetters: 0 }, 'it goes on collecting')
  await one.restart()
  await publish('Three')
  t.match(await one.queue(), { state: 'disabled', pending: 3, deadLetters: 0 })
  t.same(await shown(), disabled)
  t.match((await call('POST', `/subscriptions/${name}/test`)).json, { delivered: false })
  t.match(await shown(), { state: 'disabled' })
  t.equal(receiver.received.length, tried + 1, 'nothing but the test message was sent')

  receiver.behave(() => 204)
  t.match((await call('POST', `/subscriptions/${name}/test`)).json, { delivered: true })
  await receiver.until((received) => titles(received).includes('Three'))
  t.same(titles(receiver.received.slice(tried + 2)), ['One', 'Two', 'Three'])
  await until(({ state }) => state === 'active')
  t.equal(mail.count(), 1, 'its contact heard of it once')
})

onEachStore('a replay enables it too, and what waited goes first', async (t, store) => {
  const { receiver, publish, until, restart, call, name } = await start(t, store)
  receiver.behave(() => 410)
  await publish('One')
  await until(({ state }) => state === 'retrying')
  await restart(nearlyAnHour)
  await until(({ state }) => state === 'disabled')
  await publish('Two')
  receiver.behave(() => 201)
  t.match((await call('PUT', '/pubsub', { subscription: name })).json, { replayed: 0 })
  await receiver.until((received) => titles(received).includes('Two'))
  t.same(titles(receiver.received).slice(-2), ['One', 'Two'])
})

onEachStore('any other answer in between begins the hour anew', async (t, store) => {
  const { receiver, publish, until, restart, shown } = await start(t, store)
  receiver.behave(() => 410)
  await publish('One')
  await until(({ state }) => state === 'retrying')
  const answers = [500, 410, 410]
  receiver.behave(() => answers.shift() ?? 201)
  const tried = receiver.received.length
  await restart(nearlyAnHour)
  await receiver.until((received) => received.length > tried && answers.length === 0)
  await until(({ state }) => state === 'active')
  t.match(await shown(), { state: 'active' })
  t.equal(receiver.received.filter(({ event }) => event.title === 'One').length, tried + 4)
})
