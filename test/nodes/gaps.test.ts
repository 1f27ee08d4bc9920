import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import { withoutRedis } from '../redis-server.ts'
import { type FleetNode, startFleet, until } from './fleet.ts'

t.test(
  'a Redis that is emptied again and again: nodes start again, one time after the other',
  { skip: withoutRedis },
  async (t) => {
    const { redis, a, b } = await startFleet(t, 2)
    const client = new Redis(redis.url)
    t.teardown(() => client.disconnect())
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
      const messages = node.messages()
      t.ok(messages.filter((message) => message === 'hub ready').length > 1)
      t.notOk(messages.some((message) => message.startsWith('the node cannot start again')))
    }
  },
)

/** Whether the node takes a credential; it may be starting again. */
async function adds(node: FleetNode): Promise<boolean> {
  const request = { role: 'subscriber', label: labelOf(node), filters: ['radio/#'] }
  return node.ask('credentials.add', request).then(
    () => true,
    () => false,
  )
}

function labelOf({ index }: FleetNode): string {
  return `by-${index}`
}

async function labels(node: FleetNode): Promise<string[]> {
  const list = await node.ask<{ label: string }[]>('credentials.list').catch(() => [])
  return list.map(({ label }) => label).sort()
}
