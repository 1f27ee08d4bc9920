import { join } from 'node:path'
import type { Test } from 'tap'
import { addUser, openApi } from '../../../bridge-https/api.ts'
import { startMailServer } from '../../../bridge-https/users/mail-server.ts'
import { writeConfig } from '../../../bridge-https/users/write-config.ts'
import { institutions, playing, station } from '../../../events.ts'
import { pushing, startReceiver } from '../../../receiver.ts'
import { startTestHub, temporaryDirectory } from '../../../start-hub.ts'
import { openStoreOf, type StoreSettings } from '../../../stores.ts'

const [own = ''] = institutions
const playingUrl = '/events/de.org.hub.v1.radio.track.playing'

/** Starts a hub with one webhook. Returns the receiver, and functions for the webhook's institution and an operator. */
export async function startWithWebhook(t: Test, store: StoreSettings) {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const mail = await startMailServer(t)
  const smtp = { host: '127.0.0.1', port: mail.port, from: 'hub@hub.example' }
  const env = {
    ...store,
    ...pushing(receiver),
    HUB_CONFIG: await writeConfig(t, { smtp }),
    HUB_PUBLIC_URL: 'https://hub.example', // keeps tokens valid over a restart, which changes the port
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
    token,
    body: { type: 'PUBSUB', method: 'PUSH', url, contact: 'a@b.example', topic: station().id },
  })
  const name = String(json.name)
  const shown = async () => (await api.call('GET', `/subscriptions/${name}`, { token })).json
  const queue = async () => {
    const queues = await hub.ask<{ name: string; state: string; pending: number }[]>('queues.list')
    return queues.find((queue) => queue.name === name)
  }

  return {
    home,
    receiver,
    mail,
    token,
    publish,
    name,
    json,
    shown,
    call: (method: string, path: string, body?: object) => api.call(method, path, { token, body }),
    until: async (holds: (subscription: Record<string, unknown>) => boolean) =>
      hub.until(async () => holds(await shown())),
    /** Runs a `hubctl` command. Rejects if the node refuses it. */
    ask: <Result>(command: string, args?: Record<string, unknown>): Promise<Result> => hub.ask(command, args),
    queue,
    /** Resolves when every delivery is acknowledged, and the acknowledgements are stored. */
    untilIdle: async () => hub.until(async () => (await queue())?.state === 'idle'),
    /** Stops the hub, changes the stored standing of the webhook with `change`, and starts the hub again. */
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

/** A change for `restart`: the webhook has answered nothing but 410 for one millisecond less than an hour. */
export const nearlyAnHour = (standing: Record<string, unknown>) => ({
  ...standing,
  gone: { at: Date.now(), ms: 3_599_999 },
})

/** The titles of events in the order of their arrival. */
export const titles = (received: readonly { event: Record<string, unknown> }[]) =>
  received.map(({ event }) => String(event.title))
