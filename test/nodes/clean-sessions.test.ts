import { Redis } from 'ioredis'
import t from 'tap'
import { storeKeys } from '../../store/keys.ts'
import { keysOf } from '../../store/redis/script.ts'
import { closed, connect } from '../clients.ts'
import { patienceMs } from '../patience.ts'
import { withoutRedis } from '../redis-server.ts'
import { comes } from '../until.ts'
import { startFleet } from './fleet.ts'

const { prefix } = storeKeys.cleanSession

t.test('clean sessions of several nodes', { skip: withoutRedis }, async (t) => {
  const { redis, a, b } = await startFleet(t, 2, { inTurn: true })
  const client = new Redis(redis.url)
  t.teardown(() => client.disconnect())
  const keys = keysOf('hub:test')
  const stored = async () =>
    (await client.hkeys(keys.values))
      .filter((key) => key.startsWith(prefix))
      .map((key) => key.slice(prefix.length))
  const subscriber = await a.subscriber('radio/#')
  const stranger = await a.subscriber('radio/+/control')
  await comes(async () => (await b.ask<unknown[]>('credentials.list')).length === 2, patienceMs)

  t.test('no other node hears of one that comes and goes', async (t) => {
    const page = await connect(t, a, subscriber, { clientId: 'silent' })
    t.same(await stored(), ['silent'])
    await page.client.endAsync()
    await comes(async () => (await stored()).length === 0, patienceMs)
    const log = await client.xrange(keys.log, '-', '+')
    t.notMatch(JSON.stringify(log), /silent/)
  })

  t.test('every node lists one, and ends it', async (t) => {
    const page = await connect(t, a, subscriber, { clientId: 'listed' })
    t.match(await b.connected('listed'), { connected: true, node: a.name })
    t.match(await b.ask('sessions.show', { clientId: 'listed' }), { persistent: false, connected: true })
    const gone = closed(page.client)
    await b.ask('clients.disconnect', { clientId: 'listed' })
    await gone
    await comes(async () => (await stored()).length === 0, patienceMs)
    await t.rejects(b.ask('clients.disconnect', { clientId: 'listed' }), { message: /listed/ })
  })

  for (const [from, to] of [
    [true, true],
    [true, false],
    [false, true],
  ] as const) {
    const kind = (clean: boolean) => (clean ? 'clean' : 'persistent')
    t.test(`a ${kind(to)} session takes over a ${kind(from)} one at another node`, async (t) => {
      const clientId = `moves-${from}-${to}`
      const first = await connect(t, a, subscriber, { clientId, clean: from })
      const gone = closed(first.client)
      await t.rejects(connect(t, b, stranger, { clientId, clean: to }), { code: 2 }, 'its owner keeps it')
      const second = await connect(t, b, subscriber, { clientId, clean: to })
      await gone
      t.same(await stored(), to ? [clientId] : [])
      t.match(await a.connected(clientId), { connected: true, node: b.name })
      await second.client.endAsync()
      await comes(async () => (await stored()).length === 0, patienceMs)
    })
  }

  t.test('a node that hangs loses the client when it goes on', async (t) => {
    const pid = Number(a.name.slice(1))
    const first = await connect(t, a, subscriber, { clientId: 'hangs' })
    const gone = closed(first.client)
    process.kill(pid, 'SIGSTOP')
    t.teardown(() => process.kill(pid, 'SIGCONT'))
    await connect(t, b, subscriber, { clientId: 'hangs' })
    process.kill(pid, 'SIGCONT')
    await gone
    t.match(await b.connected('hangs'), { connected: true, node: b.name })
  })

  t.test('those of a node that was killed are free, and no record of them stays', async (t) => {
    await connect(t, a, subscriber, { clientId: 'left' })
    await connect(t, a, subscriber, { clientId: 'comes-back' })
    await a.kill()
    await connect(t, b, subscriber, { clientId: 'comes-back' })
    await comes(async () => !(await stored()).includes('left'), patienceMs)
    t.ok((await stored()).includes('comes-back'))
  })
})
