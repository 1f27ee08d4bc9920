import t from 'tap'
import { closed, connect } from '../../clients.ts'
import { control, playing, station } from '../../events.ts'
import { patienceMs } from '../../patience.ts'
import { withoutRedis } from '../../redis-server.ts'
import { comes, until } from '../../until.ts'
import { enter } from '../fence/client.ts'
import { type ClusterNode, startBackend, startCluster } from '../fence/cluster.ts'
import { addWebhooks, pendingQueues, someLivestreams, startWebhookServer } from '../fence/webhooks.ts'

/*
 * A node is stopped (SIGSTOP) until others take it for gone, and continues with its old memory. The same happens when a
 * machine sleeps, swaps, or is moved.
 */

t.test(
  'queues that were idle deliver, before and after their node stood still',
  { skip: withoutRedis, timeout: 400_000 },
  async (t) => {
    const livestreams = someLivestreams(12)
    const { receiver, env } = await startWebhookServer(t)
    const { a, b } = await startCluster(t, await startBackend(t), { workers: [1, 1], env })
    const webhooks = await addWebhooks(t, a, receiver, livestreams)
    const login = await a.publisher([...new Set(livestreams.map(({ institution }) => institution.id))])
    await b.knows(2)
    const studio = await enter(a, { login, clientId: 'studio', clean: true, timeoutMs: patienceMs })
    let sent = 0
    await publishToAll('before')
    t.same(await undelivered('before'), [], 'while both nodes are well')

    b.pause()
    await until(() => a.messages().includes('a node is gone'))
    await publishToAll('while one node stands still')
    t.same(await undelivered('while one node stands still'), [], 'while one of them stands still')
    b.resume()

    await publishToAll('after')
    t.same(await undelivered('after'), [], 'and after it continued')
    for (const node of [a, b]) t.same(await stillPending(node), [], 'nothing is left')

    async function publishToAll(word: string): Promise<void> {
      for (const livestream of livestreams) {
        const payload = JSON.stringify(playing(livestream, { playlistItemId: word, title: livestream.id }))
        const topic = `inbox/${livestream.institution.id}`
        await studio.publish({ topic, payload, qos: 1, messageId: ++sent, dup: false })
      }
    }

    /** Livestreams whose webhook does not get the event in time. */
    async function undelivered(word: string): Promise<string[]> {
      const missing = () => livestreams.filter(({ id }) => !webhooks.has(id, word)).map(({ id }) => id)
      await comes(() => missing().length === 0, patienceMs)
      return missing()
    }

    async function stillPending(node: ClusterNode): Promise<string[]> {
      await comes(async () => (await pendingQueues(node)).length === 0, patienceMs)
      return pendingQueues(node)
    }
  },
)

t.test(
  'what a node that stands still was asked to do is not reported as done',
  { skip: withoutRedis },
  async (t) => {
    const { a, b } = await startCluster(t, await startBackend(t), { workers: [1, 1] })
    const login = await a.subscriber('radio/#')
    await b.knows(1)
    await enter(b, { login, clientId: 'radio', clean: false, timeoutMs: patienceMs })
    await until(async () => (await a.ask<unknown[]>('clients.list')).length === 1)

    b.pause()
    const asked = ['clients.disconnect', 'sessions.drop'].map((command) =>
      t.rejects(a.ask(command, { clientId: 'radio' }), { message: /did not answer: try again$/ }, command),
    )
    await Promise.all(asked)
    b.resume()
    await until(async () => (await a.ask<unknown[]>('sessions.list')).length === 0)
  },
)

t.test(
  'a client whose will went out while its node stood still has to come back, with its will',
  { skip: withoutRedis },
  async (t) => {
    const { a, b } = await startCluster(t, await startBackend(t), { workers: [1, 1] })
    const institution = station().institution.id
    const login = await a.publisher([institution])
    await b.knows(1)
    const will = {
      topic: `inbox/${institution}`,
      payload: Buffer.from(JSON.stringify(control(station(), { name: 'off' }))),
      qos: 1 as const,
      retain: false,
    }
    const wills = async () =>
      (await a.ask<{ events: unknown[] }>('events.list', { livestream: station().id })).events.length
    const comeIn = () => connect(t, b, login, { clientId: 'studio', will })
    const { client } = await comeIn()
    const ended = closed(client)
    b.pause()
    await until(async () => (await wills()) === 1)
    b.resume()
    await ended
    t.equal(await wills(), 1)
    const again = await comeIn()
    again.client.stream.destroy()
    await until(async () => (await wills()) === 2)
  },
)
