import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { control, controlTopic, station } from '../../events.ts'
import { patienceMs } from '../../patience.ts'
import { withoutRedis } from '../../redis-server.ts'
import type { Issued } from '../../start-hub.ts'
import { comes, until } from '../../until.ts'
import { type Client, enter, Refused } from '../fence/client.ts'
import { type Cluster, type ClusterNode, startBackend, startCluster } from '../fence/cluster.ts'

/*
 * A node comes back with old sessions in memory. The clients of these sessions have moved to other nodes meanwhile.
 * What those nodes answered to the clients must stay true.
 */

const [kept, later] = [station(0, 0), station(0, 1)]
const institution = kept.institution.id

// The tests mostly wait, so several run at the same time.
t.jobs = 3

for (const { away, ms, leave, comeBack } of [
  { away: 'cut off', ms: 3_000, leave: cut, comeBack: mend },
  { away: 'cut off', ms: 8_000, leave: cut, comeBack: mend },
  { away: 'stopped', ms: 8_000, leave: pause, comeBack: resume },
]) {
  t.test(
    `filters that were granted elsewhere while a node was ${away} for ${ms} ms`,
    { skip: withoutRedis, timeout: 240_000 },
    async (t) => {
      const hub = await start(t)
      const { a, b } = hub
      const open = createListener(hub.subscriber, 'its old connection stays open')
      const closed = createListener(hub.subscriber, 'its old connection is closed')
      const listeners = [open, closed]
      for (const listener of listeners) {
        await listener.visit(a)
        await listener.subscribe(controlTopic(kept))
      }

      leave(a)
      const isOver = delay(ms)
      closed.cut()
      for (const listener of listeners) {
        t.equal((await listener.visit(b)).sessionPresent, true, listener.clientId)
        await listener.subscribe(controlTopic(later))
        await listener.leave()
      }
      await isOver
      comeBack(a)

      const markers = await publishForAWhile(hub)
      for (const listener of listeners) {
        t.equal((await listener.visit(b)).sessionPresent, true, `${listener.clientId}: it is still there`)
        await comes(() => listener.missing(markers).length === 0, patienceMs)
        t.same(listener.missing(markers), [], `${listener.clientId}: every later event`)
      }
    },
  )
}

t.test(
  'sessions that ended, or began, while the node of their client was stopped',
  { skip: withoutRedis, timeout: 120_000 },
  async (t) => {
    const hub = await start(t)
    const { a, b } = hub
    const ended = ['asked for at once', 'asked for elsewhere'].map((name) =>
      createListener(hub.subscriber, `ended, ${name}`),
    )
    for (const listener of ended) {
      await listener.visit(a)
      await listener.subscribe(controlTopic(kept))
    }
    const begun = createListener(hub.subscriber, 'begun')
    await begun.visit(a, { clean: true })
    await begun.subscribe(controlTopic(kept))

    pause(a)
    const isOver = delay(8_000)
    for (const listener of ended) {
      t.equal((await listener.visit(b, { clean: true })).sessionPresent, false)
      await listener.leave()
    }
    t.equal((await begun.visit(b)).sessionPresent, false, 'of a clean session nothing is left')
    for (const livestream of [kept, later]) await begun.subscribe(controlTopic(livestream))
    await begun.leave()
    await isOver
    resume(a)

    const markers = await publishForAWhile(hub)
    t.equal((await begun.visit(b)).sessionPresent, true, 'what began is there')
    await comes(() => begun.missing(markers).length === 0, patienceMs)
    t.same(begun.missing(markers), [], 'with every later event')
    for (const [listener, node] of [
      [ended[0], a],
      [ended[1], b],
    ] as const) {
      t.equal((await listener?.visit(node))?.sessionPresent, false, 'what ended is over')
    }
  },
)

t.test(
  'a node that lags behind takes over a session with the filters it has by now',
  { skip: withoutRedis, timeout: 120_000 },
  async (t) => {
    const hub = await start(t)
    const { a, b } = hub
    const listener = createListener(hub.subscriber, 'mover')
    await listener.visit(a)
    await listener.subscribe(controlTopic(kept))
    await listener.leave()
    await until(async () => (await b.ask<unknown[]>('sessions.list')).some(isOffline('mover')))

    a.way.slow(1_000)
    await listener.visit(b)
    await listener.subscribe(controlTopic(later))
    await listener.leave()
    t.equal((await listener.visitAgainAndAgain(a)).sessionPresent, true)
    a.way.open()

    const markers = await publishForAWhile(hub)
    await comes(() => listener.missing(markers).length === 0, patienceMs)
    t.same(listener.missing(markers), [], 'every later event')
  },
)

function isOffline(clientId: string): (session: unknown) => boolean {
  const offline = { clientId, connected: false }
  return (session) => {
    const { clientId, connected } = session as typeof offline
    return clientId === offline.clientId && connected === offline.connected
  }
}

function cut(node: ClusterNode): void {
  node.way.cut()
}

function mend(node: ClusterNode): void {
  node.way.open()
}

function pause(node: ClusterNode): void {
  node.pause()
}

function resume(node: ClusterNode): void {
  node.resume()
}

type Hub = Cluster & { subscriber: Issued; publisher: Issued }

async function start(t: Test): Promise<Hub> {
  const cluster = await startCluster(t, await startBackend(t), { workers: [1, 1] })
  const { a, b } = cluster
  const [subscriber, publisher] = [await a.subscriber('radio/#'), await a.publisher([institution])]
  await b.knows(2)
  return { ...cluster, subscriber, publisher }
}

/**
 * Publishes through both nodes for four seconds: a node may still store old changes a second after it is back. Returns
 * the markers.
 */
async function publishForAWhile({ nodes, publisher }: Hub): Promise<string[]> {
  const markers: string[] = []
  for (let round = 0; round < 10; round++) {
    for (const node of nodes) {
      const marker = `${round}-${node.index}`
      await publishThrough(node, publisher, marker)
      markers.push(marker)
    }
    await delay(400)
  }
  return markers
}

/** Publishes until the event is acknowledged: a node that has just come back may close connections. */
async function publishThrough(node: ClusterNode, login: Issued, marker: string): Promise<void> {
  const validUntil = new Date(Date.now() + 3_600_000).toISOString()
  const payload = JSON.stringify(control(later, { marker, validUntil }))
  const message = { topic: `inbox/${institution}`, payload, qos: 1 as const, messageId: 1, dup: false }
  await until(async () => {
    try {
      const client = await enter(node, { login, clientId: `studio-${node.index}`, clean: true })
      await client.publish(message)
      await client.leave()
      return true
    } catch {
      return false
    }
  })
}

/** A client that visits one node after the other. */
function createListener(login: Issued, clientId: string) {
  const seen = new Set<string>()
  let client: Client | undefined

  function current(): Client {
    if (!client) throw new Error(`${clientId} is not connected`)
    return client
  }

  async function visit(node: ClusterNode, { clean = false } = {}): Promise<Client> {
    client = await enter(node, {
      login,
      clientId,
      clean,
      timeoutMs: 20_000,
      onMessage: ({ payload }) => seen.add(JSON.parse(payload.toString()).marker),
    })
    return client
  }

  return {
    clientId,
    visit,
    /** Tries up to five times: a node with a slow store may close the connection without CONNACK. */
    async visitAgainAndAgain(node: ClusterNode): Promise<Client> {
      for (let tries = 1; ; tries++) {
        try {
          return await visit(node)
        } catch (error) {
          if (error instanceof Refused || tries === 5) throw error
        }
      }
    },
    async subscribe(filter: string): Promise<void> {
      if ((await current().subscribe(filter)) !== 1) throw new Error(`${filter} was not granted`)
    },
    leave: () => current().leave(),
    cut: () => current().cut(),
    missing: (markers: readonly string[]) => markers.filter((marker) => !seen.has(marker)),
  }
}
