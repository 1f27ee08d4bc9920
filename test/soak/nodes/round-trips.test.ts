import type { Redis } from 'ioredis'
import { connect, connectPublisher } from '../../clients.ts'
import { control, institutions, station } from '../../events.ts'
import { onRedis } from '../../redis-server.ts'
import { startTestHub } from '../../start-hub.ts'

const [own = ''] = institutions
const events = 40

onRedis('one event for 1,000 offline sessions is a bounded number of round trips', async (t, redis) => {
  const env = { HUB_REDIS_URL: redis.url, HUB_PUBLIC_URL: 'https://hub.example' }
  const hub = await startTestHub(t, env)
  const subscriber = await hub.subscriber('radio/#')
  const studio = await connectPublisher(t, hub, await hub.publisher([own]), own)
  const client = redis.client()

  /** Publishes events. Returns the commands and bytes that Redis got for each. */
  async function measured(sessions: number): Promise<{ commands: number; bytes: number }> {
    const before = await totals(client)
    for (let number = 0; number < events; number++) {
      const validUntil = new Date(Date.now() + 3_600_000).toISOString()
      await studio.publish(control(station(), { name: `state-${number % 5}`, validUntil }))
    }
    const after = await totals(client)
    const each = {
      commands: (after.commands - before.commands) / events,
      bytes: Math.round((after.bytes - before.bytes) / events),
    }
    t.comment(`${sessions} sessions: ${each.commands} commands, ${each.bytes} bytes per event`)
    return each
  }

  const none = await measured(0)
  const ids = Array.from({ length: 1_000 }, (_, index) => `offline-${index}`)
  for (let from = 0; from < ids.length; from += 50) {
    await Promise.all(
      ids.slice(from, from + 50).map(async (clientId) => {
        const { client } = await connect(t, hub, subscriber, { clientId, clean: false })
        await client.subscribeAsync('radio/#', { qos: 1 })
        await client.endAsync()
      }),
    )
  }
  const many = await measured(1_000)
  let waiting = 0
  for (const clientId of ids) {
    if ((await hub.ask<{ queued: number }>('sessions.show', { clientId })).queued >= events) waiting++
  }
  t.equal(waiting, 1_000)
  t.ok(
    many.commands <= none.commands + 2,
    `${many.commands} commands per event, ${none.commands} without sessions`,
  )
  t.ok(many.commands <= 8)
  t.ok(many.bytes < 500_000, `${many.bytes} bytes per event`)
})

/** The commands and bytes that Redis has got. A script is one command. */
async function totals(client: Redis): Promise<{ commands: number; bytes: number }> {
  const asked = ['evalsha', 'eval', 'xread', 'xrange']
  const statistics = await client.info('commandstats')
  const calls = new Map(
    [...statistics.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name, count]) => [name, Number(count)]),
  )
  // Reads of single values are left out: they happen for returning clients.
  const commands = asked.reduce((sum, name) => sum + (calls.get(name) ?? 0), 0)
  const [, bytes] = /total_net_input_bytes:(\d+)/.exec(await client.info('stats')) ?? []
  return { commands, bytes: Number(bytes) }
}
