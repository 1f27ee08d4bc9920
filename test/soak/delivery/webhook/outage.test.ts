import { setTimeout } from 'node:timers/promises'
import root, { type Test } from 'tap'
import { call } from '../../../../cli/connection.ts'
import { openApi, password } from '../../../bridge-https/api.ts'
import { connect } from '../../../clients.ts'
import { institutions, playing, station } from '../../../events.ts'
import { type Pushed, pushing, startReceiver } from '../../../receiver.ts'
import { spawnHub } from '../../../spawn-hub.ts'
import { type Issued, temporaryDirectory } from '../../../start-hub.ts'
import { onEachStore } from '../../../stores.ts'

/*
 * A webhook receiver is down for 8 s while 20 events per second are published. Meanwhile the hub is killed.
 */

// The tests mostly wait, so two run at the same time.
root.jobs = 2

const [own = ''] = institutions
const livestreams = [0, 1, 2, 3].map((index) => station(0, index))
const outageMs = 8_000
/** Longest time from the return of the receiver to the first push, ms. The pauses between tries double. */
const longestPauseMs = 16_000

type Hub = Awaited<ReturnType<typeof spawnHub>>

onEachStore('every event of an outage arrives, in order, and not as a flood', async (t, store) => {
  t.setTimeout(120_000)
  const home = await temporaryDirectory(t)
  const first = await startReceiver(t, home)
  const env = { ...store, ...pushing(first), HUB_PUBLISH_RATE: '0' }
  let hub = await spawnHub(t, home, env)
  const publisher = await ask<Issued>(hub, 'credentials.add', {
    role: 'publisher',
    label: 'studio',
    institutions: [own],
  })
  const publishing = startPublishing(t, publisher)
  await publishing.connect(hub)
  await publishing.next() // creates the topics
  await subscribeAll(t, hub, first.url())
  const run = publishing.run()

  await first.until((received) => received.length >= 10)
  const down = performance.now()
  await first.close()
  await setTimeout(outageMs / 2)
  await hub.stop('SIGKILL')
  hub = await spawnHub(t, home, env)
  await publishing.connect(hub)
  await setTimeout(Math.max(0, outageMs - (performance.now() - down)))
  while (publishing.acknowledged.length < 150) await setTimeout(50) // a busy machine publishes more slowly
  const second = await startReceiver(t, home, { port: first.port })
  const backAt = performance.now()
  const duringOutage = publishing.acknowledged.length - first.received.length
  await second.until((received) => received.length > 0)
  const firstAt = second.received[0]?.at ?? 0
  t.ok(firstAt - backAt < longestPauseMs, `first try ${Math.round(firstAt - backAt)} ms after the return`)
  publishing.stop()
  await run

  const missing = () => {
    const arrived = new Set([...first.received, ...second.received].map(({ event }) => event.playlistItemId))
    return publishing.acknowledged.filter((id) => !arrived.has(id))
  }
  await second.until(() => missing().length === 0)
  t.ok(duringOutage > 100, `${publishing.acknowledged.length} events, ${duringOutage} of them in the outage`)

  for (const { id } of livestreams) {
    const order = firstArrivals([...first.received, ...second.received], id)
    t.same(
      order,
      [...order].sort((a, b) => a - b),
      `in order for ${id}`,
    )
  }
  const within = (ms: number) => second.received.filter(({ at }) => at - firstAt < ms).length
  t.ok(within(1_000) <= 10, `${within(1_000)} in the first second`)
  t.ok(within(2_000) <= 30, `${within(2_000)} in the first two seconds`)
  const lastAt = second.received.at(-1)?.at ?? 0
  t.ok(lastAt - firstAt < longestPauseMs + 10_000, `caught up in ${Math.round(lastAt - firstAt)} ms`)
  const repeated = first.received.length + second.received.length - publishing.acknowledged.length
  t.ok(repeated <= livestreams.length * 2, `${repeated} came twice, because of the kill`)
})

/** Publishes 20 events per second to the hub of the last `connect`. Repeats each event until it is acknowledged. */
function startPublishing(t: Test, login: Issued) {
  const acknowledged: string[] = []
  let client: Awaited<ReturnType<typeof connect>>['client'] | undefined
  let count = 0
  let stopped = false

  async function publish(): Promise<void> {
    const number = count++
    await Promise.all(
      livestreams.map(async (livestream) => {
        const id = `${livestream.id} ${number}`
        const event = JSON.stringify({ ...playing(livestream), playlistItemId: id })
        while (!(await deliver(event))) await setTimeout(20)
        if (number > 0) acknowledged.push(id)
      }),
    )
  }

  /** Publishes an event once. False: it was not acknowledged. */
  async function deliver(event: string): Promise<boolean> {
    const used = client
    if (!used?.connected) return false
    const closed = new Promise<false>((resolve) => used.once('close', () => resolve(false)))
    const published = used.publishAsync(`inbox/${own}`, event, { qos: 1 }).then(
      () => true,
      () => false,
    )
    return Promise.race([published, closed])
  }

  return {
    acknowledged,
    next: publish,
    async connect(hub: Hub): Promise<void> {
      client = (await connect(t, hub, login)).client
    },
    async run(): Promise<void> {
      while (!stopped) {
        await publish()
        await setTimeout((1000 * livestreams.length) / 20)
      }
    },
    stop(): void {
      stopped = true
    },
  }
}

async function subscribeAll(t: Test, hub: Hub, url: string): Promise<void> {
  const api = await openApi(t, hub)
  const email = 'studio@radio.example'
  const { resetToken: token } = await ask<{ resetToken: string }>(hub, 'users.add', {
    email,
    institution: own,
    permissions: [],
  })
  await api.call('POST', '/auth/reset', { body: { token, password } })
  const login = await api.call('POST', '/auth/login', { body: { email, password } })
  for (const { id: topic } of livestreams) {
    const body = { type: 'PUBSUB', method: 'PUSH', url, contact: email, topic }
    await api.call('POST', '/subscriptions', { token: String(login.json.token), body })
  }
}

/** The numbers of a livestream's events, in the order of their first arrival. */
function firstArrivals(received: readonly Pushed[], livestreamId: string): number[] {
  const ids = received
    .filter(({ body }) => body.message.attributes.livestreamId === livestreamId)
    .map(({ event }) => String(event.playlistItemId))
  return [...new Set(ids)].map((id) => Number(id.split(' ')[1]))
}

async function ask<Result>(hub: Hub, command: string, args: Record<string, unknown>): Promise<Result> {
  const answer = await call(hub.adminSocket, command, args, 'tester')
  if ('error' in answer) throw new Error(answer.error.message)
  return answer.result as Result
}
