import { readFileSync } from 'node:fs'
import { ClassicLevel } from 'classic-level'
import type { Test } from 'tap'
import { logIn, subscribeWebhook } from '../../../bench/user.ts'
import { call } from '../../../cli/connection.ts'
import type { Livestream } from '../../../validator/feed/feed.ts'
import { connect } from '../../clients.ts'
import { control, playing } from '../../events.ts'
import type { spawnHub } from '../../spawn-hub.ts'
import type { Issued } from '../../start-hub.ts'

export type Node = Awaited<ReturnType<typeof spawnHub>>

/** How many sessions, credentials and webhooks `fill` makes. */
export interface Size {
  sessions: number
  credentials: number
  webhooks: number
  /** Port of the webhook endpoints on localhost. Nothing has to listen there. */
  webhookPort?: number
}

/** Log-ins of a filled hub, and what `isAllThere` looks for. */
export interface Filled {
  publisher: Issued
  app: Issued
  /** The client ids of the persistent sessions. */
  clientIds: string[]
  livestream: Livestream
  title: string
}

/** Sends one `hubctl` command to a node. Throws if the node refuses the command. */
export async function ask<Result>(node: Node, command: string, args: object = {}): Promise<Result> {
  const answer = await call(node.adminSocket, command, { ...args }, 'tester')
  if ('error' in answer) throw new Error(answer.error.message)
  return answer.result as Result
}

/**
 * Fills a hub with credentials, a user, sessions, webhooks and events. The sessions are away and the endpoints dead, so
 * events wait.
 */
export async function fill(
  t: Test,
  node: Node,
  livestreams: readonly Livestream[],
  size: Size,
): Promise<Filled> {
  const [livestream] = livestreams
  if (!livestream) throw new Error('there are no livestreams')
  const institutions = [...new Set(livestreams.map(({ institution }) => institution.id))]
  const add = (request: object) => ask<Issued>(node, 'credentials.add', request)
  const publisher = await add({ role: 'publisher', label: 'studio', institutions })
  const app = await add({ role: 'subscriber', label: 'app', filters: ['radio/#'] })
  for (let nth = 2; nth < size.credentials; nth++)
    await add({ role: 'subscriber', label: `app-${nth}`, filters: ['radio/#'] })

  const clientIds = Array.from({ length: size.sessions }, (_, nth) => `car-${nth}`)
  await inPortions(clientIds, 50, async (clientId) => {
    const { client } = await connect(t, node, app, { clientId, clean: false })
    await client.subscribeAsync('radio/+/control', { qos: 1 })
    await client.endAsync()
  })

  const { client: studio } = await connect(t, node, publisher)
  const send = (of: Livestream, event: object) =>
    studio.publishAsync(`inbox/${of.institution.id}`, JSON.stringify(event), { qos: 1 })
  const title = `Before ${Date.now()}`
  await inPortions(livestreams, 200, (of) => send(of, playing(of, { title })))

  const ca = readFileSync(node.caPath)
  const door = {
    httpsPort: node.httpsPort,
    ca,
    ask: <Result>(command: string, args?: object) => ask<Result>(node, command, args),
  }
  const token = await logIn(door, livestream.institution.id, ['subscribe'])
  for (let nth = 0; nth < size.webhooks; nth++)
    await subscribeWebhook(door, token, {
      url: `https://localhost:${size.webhookPort ?? 1025}/${nth}`,
      topic: livestream.id,
    })

  await send(livestream, { event: 'nothing known' })
  const validUntil = new Date(Date.now() + 24 * 3600_000).toISOString()
  await send(livestream, control(livestream, { name: 'missed', validUntil }))
  const next = { event: 'de.org.hub.v1.radio.track.next', title: 'Announced' }
  await send(livestream, playing(livestream, next))
  await studio.endAsync()
  return { publisher, app, clientIds, livestream, title }
}

/** Checks that clients and operators find in a hub what `fill` put there. */
export async function isAllThere(
  t: Test,
  node: Node,
  { publisher, app, clientIds, livestream, title }: Filled,
) {
  const [clientId = ''] = clientIds
  const car = await connect(t, node, app, { clientId, clean: false })
  t.match(await car.received.until(() => true), {
    json: { name: 'missed' },
    packet: { qos: 1, retain: false },
  })
  const player = await connect(t, node, app)
  await player.client.subscribeAsync('radio/+/track/playing', { qos: 1 })
  t.match(await player.received.until(() => true), { json: { title }, packet: { retain: true } })
  const studio = await connect(t, node, publisher)
  const after = playing(livestream, { title: 'After' })
  await studio.client.publishAsync(`inbox/${livestream.institution.id}`, JSON.stringify(after), { qos: 1 })
  await player.received.until(({ json }) => json.title === 'After')
  const events = await ask<{ events: { outcome: string }[] }>(node, 'events.list', { limit: 500 })
  t.ok(events, 'operators find what became of events')
  for (const { client } of [car, player, studio]) await client.endAsync()
}

/**
 * Returns the entries of a closed embedded store, to compare two stores. Leaves out what every run of a node changes.
 */
export async function entriesOf(directory: string): Promise<Map<string, string>> {
  const changing =
    /^(time|feed|progress|import|lock|trimming|last-request|credential-use|traffic|push-standing|attempt)\/|^number$/
  const db = new ClassicLevel<string, Buffer>(directory, { valueEncoding: 'buffer' })
  const entries = new Map<string, string>()
  for await (const [key, value] of db.iterator()) {
    const untried = key.startsWith('work/') ? value.toString('latin1').replace(/,"tries":.*/, '') : undefined
    if (!changing.test(key)) entries.set(key, untried ?? value.toString('base64'))
  }
  await db.close()
  return entries
}

async function inPortions<T>(
  all: readonly T[],
  size: number,
  work: (one: T) => Promise<unknown>,
): Promise<void> {
  for (let from = 0; from < all.length; from += size)
    await Promise.all(all.slice(from, from + size).map(work))
}
