import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { type FleetNode, startFleet, until } from '../../nodes/fleet.ts'
import { withoutRedis } from '../../redis-server.ts'

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
    for (const node of [a, b]) {
      t.ok(starts(node) > 1)
    }
  },
)

t.test(
  'a Redis that is away when a node wants to start again: it does so when Redis is back',
  { skip: withoutRedis },
  async (t) => {
    const { redis, a, b } = await startFleet(t, 2)
    // Repeat this if node a started again before Redis was killed.
    for (let round = 1; starts(a) === round; round++) {
      if (round > 1) await redis.restart()
      await redis.client().flushall()
      await until(() => count(a, 'the node lost track') >= round)
      await redis.kill()
    }
    await until(() => count(a, 'the node cannot start again yet') > 0)
    await redis.restart()
    for (const node of [a, b]) await until(() => adds(node))
    t.ok(starts(a) > 1)
  },
)

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
  return node.messages().filter((message) => message.startsWith(beginning)).length
}

function labelOf({ index }: FleetNode): string {
  return `by-${index}`
}

async function labels(node: FleetNode): Promise<string[]> {
  const list = await node.ask<{ label: string }[]>('credentials.list').catch(() => [])
  return list.map(({ label }) => label).sort()
}
