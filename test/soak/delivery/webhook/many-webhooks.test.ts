import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Test } from 'tap'
import { setPrefix, sharedPrefix } from '../../../../delivery/queue/shared-records.ts'
import { formatKey, presentFormat } from '../../../../store/stored-value.ts'
import { addUser, openApi } from '../../../bridge-https/api.ts'
import { connect } from '../../../clients.ts'
import { institutions, playing, station } from '../../../events.ts'
import { pushing, startReceiver } from '../../../receiver.ts'
import { spawnHub } from '../../../spawn-hub.ts'
import { askNode, type Issued, temporaryDirectory } from '../../../start-hub.ts'
import { onEachStore, openStoreOf, type StoreSettings } from '../../../stores.ts'

/*
 * Many webhooks of one livestream get each event alike, at their own pace. The node is killed in between.
 */

const [own = ''] = institutions
const count = 20

interface Row {
  name: string
  url: string
  pending: number
}

/** Starts a node as a process of its own, with webhooks of one livestream. */
async function start(t: Test, store: StoreSettings) {
  const home = await temporaryDirectory(t)
  const receiver = await startReceiver(t, home)
  const env = { ...store, ...pushing(receiver), HUB_PUBLIC_URL: 'https://hub.example', HUB_PUBLISH_RATE: '0' }
  let node = await spawnHub(t, home, env)
  const ask = <Result>(command: string, args?: Record<string, unknown>) =>
    askNode<Result>(node.adminSocket, command, args ?? {})
  const login = await ask<Issued>('credentials.add', {
    role: 'publisher',
    label: 'studio',
    institutions: [own],
  })
  const publish = async (...titles: string[]) => {
    const { client } = await connect(t, node, login)
    for (const title of titles)
      await client.publishAsync(`inbox/${own}`, JSON.stringify(playing(station(), { title })), { qos: 1 })
    await client.endAsync()
  }
  await publish('makes the topic')
  const api = await openApi(t, node)
  const { token } = await addUser({ ask }, api, own)
  for (let nth = 0; nth < count; nth++) {
    const url = receiver.url(`/${nth}`)
    const body = { type: 'PUBSUB', method: 'PUSH', url, contact: 'a@b.example', topic: station().id }
    const { status, text } = await api.call('POST', '/subscriptions', { token, body })
    if (status !== 201) throw new Error(text)
  }
  const rows = async () =>
    (await ask<Row[]>('subscriptions.list')).sort((a, b) => nthOf(a.url) - nthOf(b.url))

  return {
    home,
    receiver,
    ask,
    publish,
    rows,
    pause: async (...nths: number[]) => {
      const all = await rows()
      for (const nth of nths) await ask('subscriptions.pause', { name: all[nth]?.name })
    },
    resume: async () => {
      for (const { name } of await rows()) await ask('subscriptions.resume', { name }).catch(() => undefined)
    },
    /** The titles that a webhook has got, in the order of their first arrival. */
    titlesOf: (nth: number) => [
      ...new Set(
        receiver.received.filter(({ path }) => path === `/${nth}`).map(({ event }) => String(event.title)),
      ),
    ],
    /** Kills the node if it runs, and starts it again. */
    async kill(): Promise<void> {
      await node.stop('SIGKILL')
      node = await spawnHub(t, home, env)
    },
    stop: () => node.stop('SIGTERM'),
  }
}

function nthOf(url: string): number {
  return Number(new URL(url).pathname.slice(1))
}

const all = Array.from({ length: count }, (_, nth) => nth)

onEachStore('paused webhooks and those that deliver share what waits, over a kill', async (t, store) => {
  const one = await start(t, store)
  const [paused, open] = [all.slice(0, 10), all.slice(10)]
  await one.pause(...paused)
  await one.publish('1', '2', '3')
  await one.receiver.until(() => open.every((nth) => one.titlesOf(nth).length === 3))
  await one.kill()
  one.receiver.behave(() => 503)
  await one.publish('4')
  await one.receiver.until((received) => received.some(({ event }) => event.title === '4'))
  await one.kill()
  t.same(
    (await one.rows()).map(({ pending }) => pending).slice(0, 10),
    paused.map(() => 4),
  )
  one.receiver.behave(() => 201)
  await one.resume()
  await one.publish('5')
  await one.receiver.until(() => all.every((nth) => one.titlesOf(nth).includes('5')))
  for (const nth of all) t.same(one.titlesOf(nth), ['1', '2', '3', '4', '5'], `webhook ${nth}`)
  while ((await one.rows()).some(({ pending }) => pending > 0)) await setTimeout(20)
})

onEachStore('a store of format 2 is taken over with all that waits in it', async (t, store) => {
  const one = await start(t, store)
  await one.pause(...all)
  await one.publish('1', '2')
  await one.stop()
  const data = join(one.home, 'data')
  const opened = await openStoreOf(store, data)
  // As 3.0.0-beta.3 stores it: an item of each webhook.
  for await (const [key, value] of opened.range(sharedPrefix)) {
    const { set, ...item } = JSON.parse(value.toString())
    const queues: string[] = JSON.parse(String(await opened.get(setPrefix + set)))
    const position = key.slice(sharedPrefix.length)
    const stored = `${position}${JSON.stringify({ ...item, tries: 0, refusals: 0, attempts: [] })}\n`
    const sequence = String(item.sequence).padStart(16, '0')
    await opened.commit([
      ...queues.map((queue) => ({ put: `work/${encodeURIComponent(queue)}/${sequence}`, value: stored })),
      { del: key },
    ])
  }
  for (const prefix of [setPrefix, 'work-set-used/', 'work-place/']) {
    for await (const [key] of opened.range(prefix)) await opened.commit([{ del: key }])
  }
  await opened.commit([{ put: formatKey, value: '2' }])
  await opened.close()

  await one.kill()
  t.same(
    (await one.rows()).map(({ pending }) => pending),
    all.map(() => 2),
  )
  await one.publish('3')
  await one.resume()
  await one.receiver.until(() => all.every((nth) => one.titlesOf(nth).includes('3')))
  for (const nth of all) t.same(one.titlesOf(nth), ['1', '2', '3'], `webhook ${nth}`)
  await one.stop()
  const after = await openStoreOf(store, data)
  t.equal(String(await after.get(formatKey)), String(presentFormat))
  await after.close()
})
