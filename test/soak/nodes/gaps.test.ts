import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { type FleetNode, startFleet } from '../../nodes/fleet.ts'
import { onRedis, withoutRedis } from '../../redis-server.ts'
import { spawnHub } from '../../spawn-hub.ts'
import { temporaryDirectory } from '../../start-hub.ts'
import { until } from '../../until.ts'

// The tests mostly wait, so several run at the same time.
t.jobs = 3

t.test(
  'a Redis that is emptied again and again: nodes start again, one time after the other',
  { skip: withoutRedis },
  async (t) => {
    const { redis, a, b } = await startFleet(t, 2)
    const client = redis.client()
    for (let round = 0; round < 20; round++) {
      await client.flushall()
      await delay(100)
    }
    for (const node of [a, b]) await until(() => adds(node))
    await until(async () => {
      const [ofA, ofB] = await Promise.all([labels(a), labels(b)])
      return ofA.includes(labelOf(a)) && ofA.includes(labelOf(b)) && ofA.join() === ofB.join()
    })
    // A node answers before its log says that it is ready.
    for (const node of [a, b]) await until(() => starts(node) > 1)
  },
)

t.test(
  'a Redis that is away when a node wants to start again: it does so when Redis is back',
  { skip: withoutRedis },
  async (t) => {
    const { redis, a, b } = await startFleet(t, 2)
    // Redis must be killed before node a has started again. If node a was faster, the loop tries once more.
    const isWaiting = () => count(a, 'the node cannot start again yet') > 0
    const losses = () => count(a, 'the node lost track')
    for (let round = 1; !isWaiting(); round++) {
      if (round > 1) await redis.restart()
      const before = { starts: starts(a), losses: losses() }
      await redis.client().flushall()
      await until(() => losses() > before.losses)
      await redis.kill()
      await until(() => isWaiting() || starts(a) > before.starts)
    }
    await redis.restart()
    for (const node of [a, b]) await until(() => adds(node))
    await until(() => starts(a) > 1)
  },
)

onRedis('SIGTERM ends a node that wants to start again while Redis hangs', async (t, redis) => {
  const env = { HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' }
  const node = await spawnHub(t, await temporaryDirectory(t), env)
  // Redis must be killed before the node has started again. If the node was faster, the loop tries once more.
  const failures = () => times(node, 'the node cannot start again yet')
  for (let round = 1; failures() === 0; round++) {
    if (round > 1) await redis.restart()
    const before = { starts: times(node, 'hub ready'), losses: times(node, 'the node lost track') }
    const client = redis.client()
    await client.flushall()
    client.disconnect() // otherwise this client would connect to `hanging` below, too
    await until(() => times(node, 'the node lost track') > before.losses)
    await redis.kill()
    await until(() => failures() > 0 || times(node, 'hub ready') > before.starts)
  }
  // Wait for five failures: from then on, one pause and one attempt take so long that SIGTERM must interrupt them.
  await until(() => failures() >= 5)
  const hanging = createServer((socket) => socket.on('error', () => {})).listen(redis.port, '127.0.0.1')
  t.teardown(() => hanging.close())
  await once(hanging, 'connection')
  t.equal(await node.stop('SIGTERM'), 0)
})

/** Adds a credential. False if the node refuses, for example because it is starting again. */
async function adds(node: FleetNode): Promise<boolean> {
  const request = { role: 'subscriber', label: labelOf(node), filters: ['radio/#'] }
  return node.ask('credentials.add', request).then(
    () => true,
    () => false,
  )
}

/** How often the node has started. */
function starts(node: FleetNode): number {
  return count(node, 'hub ready')
}

function count(node: FleetNode, beginning: string): number {
  return times({ messages: node.messages() }, beginning)
}

function times({ messages }: { messages: readonly string[] }, beginning: string): number {
  return messages.filter((message) => message.startsWith(beginning)).length
}

function labelOf({ index }: FleetNode): string {
  return `by-${index}`
}

async function labels(node: FleetNode): Promise<string[]> {
  const list = await node.ask<{ label: string }[]>('credentials.list').catch(() => [])
  return list.map(({ label }) => label).sort()
}
